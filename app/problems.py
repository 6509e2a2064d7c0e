"""Errors to answers: one table. In whose words each is written is in `app.envelopes`."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from app import errors
from app.canvas import errors as canvas_errors
from app.canvas.errors import Problem
from app.envelopes import PROBLEM_DOCUMENT, Refusal, envelope_of
from app.logging import log
from app.metrics import Metrics
from engine import protocol

# Spread out, so that clients turned away together do not come back together.
RETRY_AFTER_SECONDS = (1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How one error is answered.

    Attributes:
        code: last part of the problem's `type`, stable.
        detail: what happened and what to do, for every request alike.
        may_retry: whether the answer carries `Retry-After`.
    """

    status: int
    code: str
    title: str
    detail: str
    may_retry: bool = False


INTERNAL = Row(
    status=500,
    code="internal",
    title="Internal error",
    detail="This is a bug of the service; nothing was decided.",
)
DEAD = Row(
    status=503,
    code="engine_dead",
    title="Engine dead",
    detail="The engine of this replica failed; the replica will be replaced.",
    may_retry=True,
)
UNAUTHENTICATED = Row(
    status=401,
    code="unauthenticated",
    title="Unauthenticated",
    detail="Send a key of this service: Authorization: Bearer, or X-Api-Key.",
)
# Answered before there is a request that an application could see.
NOT_HTTP = Row(status=400, code="malformed_request", title="Malformed request", detail="This is not HTTP/1.1.")
HEADERS_TOO_LONG = Row(
    status=431, code="headers_too_long", title="Headers too long", detail="Headers and path together are too long."
)
TABLE: dict[type[Exception], Row] = {
    errors.MalformedBody: Row(
        status=400,
        code="malformed_body",
        title="Malformed body",
        detail="The body is not JSON as it is taken here.",
    ),
    errors.BodyTooLarge: Row(
        status=413, code="body_too_large", title="Body too large", detail="The body is over the byte limit."
    ),
    errors.UnsupportedMediaType: Row(
        status=415,
        code="unsupported_media_type",
        title="Unsupported media type",
        detail="Only JSON bodies are taken, as they are or encoded with zstd.",
    ),
    errors.SchemaRejected: Row(
        status=422,
        code="schema_rejected",
        title="Not a decision request",
        detail="Fields of the body are missing, unknown or of the wrong type.",
    ),
    canvas_errors.RubricRejected: Row(
        status=422,
        code="rubric_rejected",
        title="Rubric rejected",
        detail="The rubric is outside the closed subset of JSON Schema that is understood here.",
    ),
    canvas_errors.PromptTooLong: Row(
        status=422,
        code="prompt_too_long",
        title="Prompt too long",
        detail="Rubric and state together are longer than the model's context.",
    ),
    canvas_errors.PlanTooLarge: Row(
        status=422,
        code="plan_too_large",
        title="Plan too large",
        detail="The questions, as they are laid out, take more reading than one request may.",
    ),
    errors.NotOffered: Row(
        status=400,
        code="not_offered",
        title="Not offered",
        detail="The request asks for what this service does not have.",
    ),
    errors.NoKey: UNAUTHENTICATED,
    errors.UnknownKey: UNAUTHENTICATED,
    errors.BodyTooSlow: Row(
        status=408, code="body_too_slow", title="Body too slow", detail="The body did not arrive in time."
    ),
    errors.QuotaExceeded: Row(
        status=429,
        code="quota_exceeded",
        title="Quota exceeded",
        detail="As many requests of yours as this replica serves at once are under way.",
        may_retry=True,
    ),
    errors.Overloaded: Row(
        status=429,
        code="overloaded",
        title="Overloaded",
        detail="This replica is healthy and full.",
        may_retry=True,
    ),
    errors.Starting: Row(
        status=503, code="starting", title="Starting", detail="The engine is not ready yet.", may_retry=True
    ),
    errors.Draining: Row(
        status=503, code="draining", title="Draining", detail="This replica is shutting down.", may_retry=True
    ),
    errors.EngineDead: DEAD,
    protocol.EngineDied: DEAD,
    errors.DeadlineExceeded: Row(
        status=504,
        code="deadline_exceeded",
        title="Deadline exceeded",
        detail="The request was accepted but not finished in time.",
    ),
    errors.InternalError: INTERNAL,
    canvas_errors.NonFiniteLogprobs: INTERNAL,
    canvas_errors.UnfitTokenizer: INTERNAL,
    protocol.EngineStartFailed: INTERNAL,
    protocol.ReadFailed: INTERNAL,
}
HTTP_ROWS: dict[int, Row] = {
    404: Row(status=404, code="not_found", title="Not found", detail="There is no such route."),
    405: Row(status=405, code="method_not_allowed", title="Method not allowed", detail="See the Allow header."),
}


class ProblemHandler:
    """Answers an error with its problem document, counts a request that was turned away, logs what is our fault."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, request: Request, error: Exception) -> JSONResponse:
        row = row_of(error)
        if row is INTERNAL or isinstance(error, protocol.EngineDied):
            log(logging.ERROR, "request failed", error=error, request_id=request.scope["onestep.request_id"])
        elif not isinstance(error, HTTPException | errors.DeadlineExceeded):
            self._metrics.rejected.labels(row.code).inc()
        return answer_problem(request, error)


def row_of(error: Exception) -> Row:
    """The table's row for an error; anything the table does not know is our bug."""
    if isinstance(error, HTTPException):
        return HTTP_ROWS.get(error.status_code, INTERNAL)
    return next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), INTERNAL)


def answer_problem(request: Request, error: Exception) -> JSONResponse:
    """What an error is answered with, in the words of the protocol that was spoken."""
    row = row_of(error)
    headers = dict(getattr(error, "headers", None) or {})
    if row.may_retry:
        headers["Retry-After"] = str(random.randint(*RETRY_AFTER_SECONDS))  # noqa: S311 - jitter, not a secret
    envelope = envelope_of(request.scope)
    status, document = envelope.write(_refusal(row, request_id_of(request.scope), error))
    return JSONResponse(document.model_dump(), status_code=status, headers=headers, media_type=envelope.media_type)


def raw_problem(row: Row, request_id: str) -> bytes:
    """A whole HTTP/1.1 answer, for what came before there was a request; the connection ends with it."""
    status, document = PROBLEM_DOCUMENT.write(_refusal(row, request_id, None))
    body = document.model_dump_json().encode()
    head = (
        f"HTTP/1.1 {status} {row.title}",
        f"content-type: {PROBLEM_DOCUMENT.media_type}",
        f"content-length: {len(body)}",
        f"x-request-id: {request_id}",
        "connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body


def request_id_of(scope: Mapping[str, object]) -> str:
    """The id of a request."""
    return str(scope.get("onestep.request_id", "unknown"))


def _refusal(row: Row, request_id: str, error: Exception | None) -> Refusal:
    return Refusal(
        status=row.status,
        code=row.code,
        title=row.title,
        detail=row.detail,
        problems=_problems(error),
        has_key=not isinstance(error, errors.NoKey),
        request_id=request_id,
    )


def _problems(error: Exception | None) -> tuple[Problem, ...]:
    if isinstance(error, errors.RequestRejected | canvas_errors.RubricRejected):
        return error.problems
    if isinstance(error, canvas_errors.PromptTooLong | canvas_errors.PlanTooLarge):
        return (error.problem,)
    return ()
