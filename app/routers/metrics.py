"""GET /metrics: the Prometheus page."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST

from app.metrics import Metrics

router = APIRouter()


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Our collectors and vLLM's own, on one page."""
    collectors: Metrics = request.state.metrics
    return Response(collectors.exposition(), media_type=CONTENT_TYPE_LATEST)
