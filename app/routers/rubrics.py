"""POST /rubrics/check."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.check_wire import RubricCheckRequest, RubricCheckResponse, check_response, parse_check_request
from app.checks import Check
from app.departure import while_connected
from app.documents import body_of, problem_responses
from app.intake import take_body, tenant_of
from app.serving import Serving

router = APIRouter()


@router.post(
    "/rubrics/check",
    response_model=RubricCheckResponse,
    responses=problem_responses(400, 401, 408, 413, 415, 422, 429, 500, 503),
    openapi_extra=body_of(RubricCheckRequest),
)
async def check_rubric(request: Request) -> Response:
    """Show what a rubric becomes, and everything wrong with it; nothing is read."""
    body = await take_body(request)
    serving: Serving = request.state.serving
    assert serving.checks is not None, "ready without a service; this is a bug"
    asked = parse_check_request(body, tenant_of(request))
    content = await while_connected(request.receive, serving.checks.answer(asked, _content))
    return Response(content, media_type="application/json")


def _content(check: Check) -> bytes:
    return check_response(check).model_dump_json().encode()
