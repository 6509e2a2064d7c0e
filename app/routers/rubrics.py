"""POST /rubrics/check."""

from __future__ import annotations

from fastapi import APIRouter, Request

from app.body import receive_json
from app.check_wire import RubricCheckRequest, RubricCheckResponse, check_response, parse_check_request
from app.documents import body_of, problem_responses
from app.serving import Serving

router = APIRouter()


@router.post(
    "/rubrics/check",
    response_model=RubricCheckResponse,
    responses=problem_responses(400, 413, 415, 422, 429, 500, 503),
    openapi_extra=body_of(RubricCheckRequest),
)
async def check_rubric(request: Request) -> RubricCheckResponse:
    """Show what a rubric becomes, and everything wrong with it; nothing is read."""
    request.state.lifecycle.require_ready()
    serving: Serving = request.state.serving
    assert serving.checks is not None, "ready without a service; this is a bug"
    body = await receive_json(request, request.state.settings.body_limit_bytes)
    return check_response(await serving.checks.check(parse_check_request(body)))
