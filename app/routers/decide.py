"""POST /decide."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.decisions import Decision
from app.departure import while_connected
from app.documents import body_of, problem_responses
from app.intake import take_body, tenant_of
from app.serving import Serving
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
    serving: Serving = request.state.serving
    content = await while_connected(request.receive, serving.decisions.answer(asked, _content))
    return Response(content, media_type="application/json")


def _content(decision: Decision) -> bytes:
    return decide_response(decision).model_dump_json().encode()
