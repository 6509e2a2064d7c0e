"""POST /v1/systemone and GET /v1/models: TypeSafe's protocol."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.decisions import Decision
from app.departure import while_connected
from app.documents import body_of, system_one_responses
from app.intake import take_body, tenant_of
from app.models import ModelsResponse, models_response
from app.offload import beside_the_loop
from app.questionnaire import size_of
from app.serving import Serving
from app.settings import Settings
from app.system_one_wire import (
    ALIAS,
    SystemOneInquiry,
    SystemOneRequest,
    SystemOneResponse,
    parse_system_one_request,
    system_one_response,
)

router = APIRouter()


@router.post(
    "/v1/systemone",
    response_model=SystemOneResponse,
    responses=system_one_responses(400, 401, 403, 408, 413, 415, 422, 429, 500, 503, 504),
    openapi_extra=body_of(SystemOneRequest),
)
async def system_one(request: Request) -> Response:
    """Answer TypeSafe's questions about a state."""
    body = await take_body(request)
    serving: Serving = request.state.serving
    inquiry = await beside_the_loop(size_of(body), parse_system_one_request, body, serving.model, tenant_of(request))
    with inquiry.questionnaire.in_its_own_words():
        answering = serving.decisions.answer(inquiry.request, partial(_content, inquiry))
        content = await while_connected(request.receive, answering)
    return Response(content, media_type="application/json")


@router.get(
    "/v1/models",
    response_model=ModelsResponse,
    responses=system_one_responses(401, 403),
)
async def models(request: Request) -> Response:
    """What may stand in a request's `model`."""
    settings: Settings = request.state.settings
    content = models_response(settings.model_name, ALIAS).model_dump_json()
    return Response(content, media_type="application/json")


def _content(inquiry: SystemOneInquiry, decision: Decision) -> bytes:
    return system_one_response(inquiry.questions, decision).model_dump_json().encode()
