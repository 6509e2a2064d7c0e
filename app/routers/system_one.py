"""POST /v1/systemone and GET /v1/models: TypeSafe's protocol."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app.answering import answer_inquiry
from app.documents import body_of, system_one_responses
from app.models import ModelsResponse, models_response
from app.settings import Settings
from app.system_one_wire import (
    ALIAS,
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
    return await answer_inquiry(request, parse_system_one_request, system_one_response)


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
