"""Every error with the answer it has to get: the status rule."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.exceptions import HTTPException

from app.canvas.errors import NonFiniteLogprobs, PlanTooLarge, Problem, PromptTooLong, RubricRejected, UnfitTokenizer
from app.errors import (
    BodyTooLarge,
    BodyTooSlow,
    DeadlineExceeded,
    Draining,
    EngineDead,
    InternalError,
    MalformedBody,
    NoKey,
    NotOffered,
    Overloaded,
    QuotaExceeded,
    SchemaRejected,
    Starting,
    UnknownKey,
    UnsupportedMediaType,
)
from engine.protocol import EngineDied, EngineStartFailed, ReadFailed
from tests.app.canary import CANARY

PROBLEM = Problem(pointer="/rubric", code="bad", message="must be good")


@dataclass(frozen=True)
class ProblemCase:
    """An error and how it is answered."""

    error: Exception
    status: int
    code: str
    may_retry: bool = False
    problems: tuple[Problem, ...] = ()

    @property
    def id(self) -> str:
        """The error's name."""
        return type(self.error).__name__


TOO_LONG = Problem(
    pointer="/state", code="prompt_too_long", message="prompt and canvas need at least 70 tokens, 64 are served"
)
CASES = (
    ProblemCase(MalformedBody(PROBLEM), 400, "malformed_body", problems=(PROBLEM,)),
    ProblemCase(NotOffered(PROBLEM), 400, "not_offered", problems=(PROBLEM,)),
    ProblemCase(NoKey(), 401, "unauthenticated"),
    ProblemCase(UnknownKey(), 401, "unauthenticated"),
    ProblemCase(BodyTooSlow(), 408, "body_too_slow"),
    ProblemCase(BodyTooLarge(PROBLEM), 413, "body_too_large", problems=(PROBLEM,)),
    ProblemCase(UnsupportedMediaType(PROBLEM), 415, "unsupported_media_type", problems=(PROBLEM,)),
    ProblemCase(SchemaRejected(PROBLEM, PROBLEM), 422, "schema_rejected", problems=(PROBLEM, PROBLEM)),
    ProblemCase(RubricRejected((PROBLEM,)), 422, "rubric_rejected", problems=(PROBLEM,)),
    ProblemCase(PromptTooLong("/state", 70, 64), 422, "prompt_too_long", problems=(TOO_LONG,)),
    ProblemCase(PlanTooLarge(64), 422, "plan_too_large", problems=(PlanTooLarge(64).problem,)),
    ProblemCase(Overloaded(), 429, "overloaded", may_retry=True),
    ProblemCase(QuotaExceeded(), 429, "quota_exceeded", may_retry=True),
    ProblemCase(InternalError(CANARY), 500, "internal"),
    ProblemCase(NonFiniteLogprobs(CANARY), 500, "internal"),
    ProblemCase(UnfitTokenizer(CANARY), 500, "internal"),
    ProblemCase(EngineStartFailed(CANARY), 500, "internal"),
    ProblemCase(ReadFailed(CANARY), 500, "internal"),
    ProblemCase(Starting(), 503, "starting", may_retry=True),
    ProblemCase(Draining(), 503, "draining", may_retry=True),
    ProblemCase(EngineDead(), 503, "engine_dead", may_retry=True),
    ProblemCase(EngineDied(CANARY), 503, "engine_dead", may_retry=True),
    ProblemCase(DeadlineExceeded(), 504, "deadline_exceeded"),
)
# Not of our trees: the web framework's, and bugs.
OTHER_CASES = (
    ProblemCase(HTTPException(404, CANARY), 404, "not_found"),
    ProblemCase(HTTPException(405, CANARY, {"Allow": "POST"}), 405, "method_not_allowed"),
    ProblemCase(HTTPException(418, CANARY), 500, "internal"),
    ProblemCase(ZeroDivisionError(CANARY), 500, "internal"),
)


def subclasses(base: type[Exception]) -> set[type[Exception]]:
    """Every error below one, of the package's own."""
    below = {kind for kind in base.__subclasses__() if kind.__module__.split(".")[0] in ("app", "engine")}
    return below.union(*(subclasses(kind) for kind in below))
