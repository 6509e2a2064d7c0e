"""POST /decide."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app.body import receive_json
from app.decisions import DecisionService
from app.documents import body_of, problem_responses
from app.serving import Serving
from app.wire import DecideRequest, DecideResponse, decide_response, parse_decide_request

router = APIRouter()


@router.post(
    "/decide",
    response_model=DecideResponse,
    responses=problem_responses(400, 413, 415, 422, 429, 500, 503, 504),
    openapi_extra=body_of(DecideRequest),
)
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
