"""POST /decide."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from app.body import receive_json
from app.decisions import DecisionService
from app.openapi import schema_of
from app.serving import Serving
from app.wire import DecideRequest, DecideResponse, ProblemDocument, decide_response, parse_decide_request

router = APIRouter()

PROBLEM = {"application/problem+json": {"schema": schema_of(ProblemDocument)}}
RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": description, "content": PROBLEM}
    for status, description in {
        400: "The body is not JSON as it is taken here.",
        413: "The body is over the byte limit.",
        415: "The body is not declared as JSON, or is encoded.",
        422: "Understood, but outside what is accepted.",
        429: "Healthy and full; retry after a moment.",
        500: "A bug of the service.",
        503: "This replica cannot serve; see /health.",
        504: "Accepted, but not finished in time.",
    }.items()
}
# The body is read and checked by `app.body` and `app.wire`: FastAPI's own validation would echo input in its errors.
BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": schema_of(DecideRequest)}},
    }
}


@router.post("/decide", response_model=DecideResponse, responses=RESPONSES, openapi_extra=BODY)
async def decide(request: Request) -> DecideResponse:
    """Answer every question of a rubric about a state."""
    service = _service(request)
    body = await receive_json(request, request.state.settings.body_limit_bytes)
    return decide_response(await service.decide(parse_decide_request(body)))


def _service(request: Request) -> DecisionService:
    request.state.lifecycle.require_ready()
    serving: Serving = request.state.serving
    assert serving.service is not None, "ready without a service; this is a bug"
    return serving.service
