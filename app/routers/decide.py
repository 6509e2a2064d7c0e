"""POST /decide."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.answering import answer
from app.documents import body_of, problem_responses
from app.intake import take_body, tenant_of
from app.wire import DecideRequest, DecideResponse, decide_response, parse_decide_request

router = APIRouter()


@router.post(
    "/decide",
    response_model=DecideResponse,
    responses=problem_responses(400, 401, 408, 413, 415, 422, 429, 500, 503, 504),
    openapi_extra=body_of(DecideRequest),
)
async def decide(request: Request) -> Response:
    """Answer every question of a rubric about a state."""
    body = await take_body(request)
    asked = parse_decide_request(body, tenant_of(request))
    return await answer(request, asked, decide_response)
