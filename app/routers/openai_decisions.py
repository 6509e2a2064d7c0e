"""POST /v1/decisions: OpenAI's Decisions API."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.answering import answer_inquiry
from app.documents import body_of, openai_responses
from app.openai_wire import (
    DecisionsRequest,
    DecisionsResponse,
    decisions_response,
    parse_decisions_request,
)

router = APIRouter()


@router.post(
    "/v1/decisions",
    response_model=DecisionsResponse,
    responses=openai_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    openapi_extra=body_of(DecisionsRequest),
)
async def decisions(request: Request) -> Response:
    """Answer OpenAI's questions about an input."""
    return await answer_inquiry(request, parse_decisions_request, decisions_response)
