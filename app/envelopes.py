"""In whose words a refusal is written: the clients of each protocol understand their own.

Two tables: which path speaks which protocol, and per protocol what it calls each code of `app.problems`. Everything
that is not 2xx is written through them, whoever noticed first: a route, the check of keys, or the last line of defence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from pydantic import BaseModel

from app.canvas.errors import Problem
from app.canvas.json import unescape
from app.wire import ProblemDocument, Wire, problem_item

SYSTEM_ONE_PATHS = ("/v1/systemone", "/v1/models")
OPENAI_PATHS = ("/v1/decisions",)
# A message that lists more is not read to its end.
TOLD_PROBLEMS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What there is to say.

    Attributes:
        status, code, title, detail: of the error's row in `app.problems`.
        problems: everything that is wrong with the request.
        has_key: False if it came without one and needs one.
    """

    status: int
    code: str
    title: str
    detail: str
    problems: tuple[Problem, ...]
    has_key: bool
    request_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """How one protocol says it.

    Attributes:
        write: the status of a refusal, and its body.
        request_id_headers: that every answer of the protocol carries, of whatever status.
    """

    media_type: str
    write: Callable[[Refusal], tuple[int, BaseModel]]
    request_id_headers: tuple[bytes, ...] = (b"x-request-id",)


class SystemOneDetail(Wire):
    """One thing wrong with a body, as FastAPI has it; never what was sent."""

    loc: list[str | int]
    msg: str
    type: str


class SystemOneFault(Wire):
    """Why there is no answer."""

    error_type: str
    message: str


class SystemOneRefusal(Wire):
    """Every answer of System One that is not 2xx: a list for a body that is not valid, else one fault."""

    detail: list[SystemOneDetail] | SystemOneFault


class OpenAIFault(Wire):
    """Why there is no answer."""

    message: str
    type: str
    param: str | None
    code: str


class OpenAIRefusal(Wire):
    """Every answer of the Decisions API that is not 2xx."""

    error: OpenAIFault


@dataclass(frozen=True, slots=True)
class Words:
    """What a protocol calls one code.

    Attributes:
        type: the protocol's own kind of error.
        status: where it is not the row's.
        message: likewise.
        code: likewise.
    """

    type: str
    status: int | None = None
    message: str | None = None
    code: str | None = None


VALIDATION = Words("validation", 422)
SYSTEM_ONE_WORDS: Mapping[str, Words] = {
    "malformed_body": VALIDATION,
    "schema_rejected": VALIDATION,
    "rubric_rejected": VALIDATION,
    "not_offered": Words("api_usage_error"),
    "unauthenticated": Words("authentication_error", message="Cannot authenticate with the server."),
    "not_found": Words("not_found"),
    "method_not_allowed": Words("api_usage_error"),
    "body_too_slow": Words("request_timeout"),
    "body_too_large": Words("max_tokens_exceeded"),
    "prompt_too_long": Words("max_tokens_exceeded", 413),
    "plan_too_large": Words("max_tokens_exceeded", 413),
    "unsupported_media_type": Words("api_usage_error"),
    "overloaded": Words("rate_limit_error"),
    "quota_exceeded": Words("rate_limit_error"),
    "internal": Words("internal_error"),
    "starting": Words("service_unavailable"),
    "draining": Words("service_unavailable"),
    "engine_dead": Words("service_unavailable"),
    "deadline_exceeded": Words("deadline_exceeded"),
}
# As the live service answers, though its documentation says 401.
SYSTEM_ONE_NO_KEY = Words("authentication_error", 403, "Must supply an API key!")
# Codes of ours that FastAPI has another name for.
SYSTEM_ONE_TYPES = {"invalid_json": "json_invalid"}

BAD_REQUEST = Words("invalid_request_error", 400)
OPENAI_WORDS: Mapping[str, Words] = {
    "malformed_body": BAD_REQUEST,
    "schema_rejected": BAD_REQUEST,
    "rubric_rejected": BAD_REQUEST,
    "plan_too_large": BAD_REQUEST,
    "prompt_too_long": Words("invalid_request_error", 400, code="context_length_exceeded"),
    "not_offered": BAD_REQUEST,
    "unauthenticated": Words("invalid_request_error", code="invalid_api_key"),
    "not_found": Words("invalid_request_error"),
    "method_not_allowed": Words("invalid_request_error"),
    "body_too_slow": Words("invalid_request_error"),
    "body_too_large": Words("invalid_request_error"),
    "unsupported_media_type": Words("invalid_request_error"),
    "overloaded": Words("rate_limit_error", code="rate_limit_exceeded"),
    "quota_exceeded": Words("rate_limit_error", code="rate_limit_exceeded"),
    "internal": Words("server_error"),
    "starting": Words("server_error"),
    "draining": Words("server_error"),
    "engine_dead": Words("server_error"),
    "deadline_exceeded": Words("server_error"),
}
OPENAI_NO_MODEL = Words("invalid_request_error", 404, code="model_not_found")
OPENAI_KINDS = ("predicate", "choice", "score")
UNKNOWN_FIELD = "extra_forbidden"


def write_problem_document(refusal: Refusal) -> tuple[int, ProblemDocument]:
    """RFC 9457."""
    return refusal.status, ProblemDocument(
        type=f"urn:onestep:problem:{refusal.code}",
        title=refusal.title,
        status=refusal.status,
        detail=refusal.detail,
        instance=f"urn:onestep:request:{refusal.request_id}",
        errors=list(map(problem_item, refusal.problems)),
    )


def write_system_one(refusal: Refusal) -> tuple[int, SystemOneRefusal]:
    """TypeSafe's shapes: FastAPI's for a body that is not valid, else one fault."""
    words = SYSTEM_ONE_WORDS[refusal.code] if refusal.has_key else SYSTEM_ONE_NO_KEY
    status = words.status or refusal.status
    if words is VALIDATION:
        return status, SystemOneRefusal(detail=list(map(_system_one_detail, refusal.problems)))
    message = words.message or _messages(problem.message for problem in refusal.problems) or refusal.detail
    return status, SystemOneRefusal(detail=SystemOneFault(error_type=words.type, message=message))


def write_openai(refusal: Refusal) -> tuple[int, OpenAIRefusal]:
    """OpenAI's shape; `param` is the first place that is wrong."""
    lacks_model = any(problem.code == "unknown_model" for problem in refusal.problems)
    words = OPENAI_NO_MODEL if lacks_model else OPENAI_WORDS[refusal.code]
    fault = OpenAIFault(
        message=_messages(map(_openai_message, refusal.problems)) or refusal.detail,
        type=words.type,
        param=_openai_param(refusal.problems[0].pointer) if refusal.problems else None,
        code=words.code or refusal.code,
    )
    return words.status or refusal.status, OpenAIRefusal(error=fault)


PROBLEM_DOCUMENT = Envelope(media_type="application/problem+json", write=write_problem_document)
SYSTEM_ONE = Envelope(
    media_type="application/json",
    write=write_system_one,
    request_id_headers=(b"x-request-id", b"x-typesafe-request-id"),
)
OPENAI = Envelope(media_type="application/json", write=write_openai)

ENVELOPES: Mapping[str, Envelope] = {
    **dict.fromkeys(SYSTEM_ONE_PATHS, SYSTEM_ONE),
    **dict.fromkeys(OPENAI_PATHS, OPENAI),
}


def envelope_of(scope: Mapping[str, object]) -> Envelope:
    """The envelope of a request's path; problem documents where it is nobody's."""
    return ENVELOPES.get(str(scope.get("path")), PROBLEM_DOCUMENT)


def _messages(messages: Iterable[str]) -> str:
    return "; ".join(islice(messages, TOLD_PROBLEMS))


def _system_one_detail(problem: Problem) -> SystemOneDetail:
    kind = SYSTEM_ONE_TYPES.get(problem.code, problem.code)
    return SystemOneDetail(loc=["body", *_system_one_place(problem.pointer)], msg=problem.message, type=kind)


def _system_one_place(pointer: str) -> list[str | int]:
    """Keys, and indexes where there is a list: only the levels of a score are one."""
    keys: list[str | int] = list(map(unescape, pointer.split("/")[1:]))
    match keys:
        case ["questions", _, "score", "criteria", str(index), *_] if index.isdecimal():
            keys[4] = int(index)
    return keys


def _openai_message(problem: Problem) -> str:
    """A problem with its place, which is made of the protocol's names alone but where a field is the caller's own."""
    place = _openai_param(problem.pointer)
    return f"{place}: {problem.message}" if place and problem.code != UNKNOWN_FIELD else problem.message


def _openai_param(pointer: str) -> str | None:
    """A place as OpenAI writes it, `questions[0].levels[1].label`."""
    keys = list(map(unescape, pointer.split("/")[1:]))
    if keys[:1] == ["questions"] and keys[2:3] and keys[2] in OPENAI_KINDS:
        del keys[2]
    return "".join(f"[{key}]" if key.isdecimal() else f".{key}" for key in keys).removeprefix(".") or None
