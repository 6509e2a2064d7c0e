"""The last steps of every route that reads: what was asked is decided for a caller who waits, and written."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from fastapi.responses import Response
from pydantic import BaseModel
from starlette.requests import Request

from app.canvas.json import Json
from app.decisions import Decision, DecisionRequest
from app.departure import while_connected
from app.intake import take_body, tenant_of
from app.offload import beside_the_loop
from app.questionnaire import Inquiry, size_of
from app.serving import Serving
from app.tenant import Tenant

Q = TypeVar("Q")


async def answer(request: Request, asked: DecisionRequest, describe: Callable[[Decision], BaseModel]) -> Response:
    """The answer to a request that was understood; `describe` makes its body."""
    serving: Serving = request.state.serving

    def content(decision: Decision) -> bytes:
        return describe(decision).model_dump_json().encode()

    answering = serving.decisions.answer(asked, content)
    return Response(await while_connected(request.receive, answering), media_type="application/json")


async def answer_inquiry(
    request: Request,
    parse: Callable[[Json, str, Tenant], Inquiry[Q]],
    describe: Callable[[Q, Decision], BaseModel],
) -> Response:
    """The answer to a request in another protocol: `parse` understands its body, `describe` makes the answer's."""
    body = await take_body(request)
    serving: Serving = request.state.serving
    inquiry = await beside_the_loop(size_of(body), parse, body, serving.model, tenant_of(request))
    with inquiry.questionnaire.in_its_own_words():
        return await answer(request, inquiry.request, partial(describe, inquiry.questions))
