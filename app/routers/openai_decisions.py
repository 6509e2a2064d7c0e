"""POST /v1/decisions: OpenAI's Decisions API."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.decisions import Decision
from app.departure import while_connected
from app.documents import body_of, openai_responses
from app.intake import take_body, tenant_of
from app.offload import beside_the_loop
from app.openai_wire import (
    DecisionsInquiry,
    DecisionsRequest,
    DecisionsResponse,
    decisions_response,
    parse_decisions_request,
)
from app.questionnaire import size_of
from app.serving import Serving

router = APIRouter()


@router.post(
    "/v1/decisions",
    response_model=DecisionsResponse,
    responses=openai_responses(400, 401, 404, 408, 413, 415, 429, 500, 503, 504),
    openapi_extra=body_of(DecisionsRequest),
)
async def decisions(request: Request) -> Response:
    """Answer OpenAI's questions about an input."""
    body = await take_body(request)
    serving: Serving = request.state.serving
    inquiry = await beside_the_loop(size_of(body), parse_decisions_request, body, serving.model, tenant_of(request))
    with inquiry.questionnaire.in_its_own_words():
        answering = serving.decisions.answer(inquiry.request, partial(_content, inquiry))
        content = await while_connected(request.receive, answering)
    return Response(content, media_type="application/json")


def _content(inquiry: DecisionsInquiry, decision: Decision) -> bytes:
    return decisions_response(inquiry.questions, decision).model_dump_json().encode()
