"""The bodies of `/decide` and `/health`, as callers see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from app.canvas.decision import Answer
from app.canvas.errors import Problem
from app.canvas.json import Json, JsonScalar, pointer
from app.canvas.noise import MAX_SEED
from app.decisions import Decision, DecisionRequest
from app.errors import SchemaRejected

# The rule each pydantic error stands for. Pydantic's own messages may quote the input, so they are not used.
MESSAGES = {
    "missing": "this field is required",
    "extra_forbidden": "there is no such field",
    "string_type": "must be a string",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "literal_error": "this version does not take this value",
    "state_type": "must be a string, an object or an array, and not empty",
}
# A body of nothing but unknown fields is answered with this many of them.
MAX_PROBLEMS = 100
OUT_OF_RANGE = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True, frozen=True)


class PolicyRequest(_Wire):
    """How to read. Each field has a server default."""

    entropy_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    max_reads: Literal[1] = 1
    layout: Literal["joint"] = "joint"
    order: Literal["rubric_first"] = "rubric_first"
    rotate_options: Literal[False] = False
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None


class DecideRequest(_Wire):
    """A state and a rubric."""

    state: Any = Field(description="A string, an object, an array, or chat messages: what the questions are about.")
    rubric: Any = Field(description="A JSON Schema of bounded questions.")
    instructions: str | None = Field(None, max_length=65_536, description="Put ahead of the questions.")
    policy: PolicyRequest = PolicyRequest()


class AnswerResponse(_Wire):
    """The answer to one question."""

    value: JsonScalar
    outcome: Literal["decided", "uncertain"]
    probability: float
    probabilities: dict[str, float]
    entropy: float
    confidence: float
    margin: float
    expected: float | None = Field(None, description="Mean level; scores only.")
    std_error: float | None = None
    agreement: float
    reads: int
    label_mass: float | None = None

    @model_serializer(mode="wrap")
    def _without_expected(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        if self.expected is None:
            del fields["expected"]
        return fields


class PolicyResponse(_Wire):
    """How it was read."""

    reads: int
    rounds: int
    stop_reason: Literal["entropy", "max_reads"]
    max_entropy: float
    seeds: list[int]


class UsageResponse(_Wire):
    """What it cost."""

    input_tokens: int
    cached_tokens: int
    canvas_tokens: int
    engine_steps: int


class TimingResponse(_Wire):
    """Where the time went, in milliseconds."""

    total_ms: float
    queue_ms: float
    engine_ms: float


class DecideResponse(_Wire):
    """A decision."""

    id: str
    model: str
    outcome: Literal["decided", "uncertain"]
    decision: dict[str, JsonScalar]
    answers: dict[str, AnswerResponse]
    policy: PolicyResponse
    usage: UsageResponse
    timing: TimingResponse
    fingerprint: str


class ProblemItem(_Wire):
    """One thing wrong with a request."""

    pointer: str
    code: str
    message: str


class ProblemDocument(_Wire):
    """RFC 9457, the body of every answer that is not 2xx."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[ProblemItem]


def parse_decide_request(body: Json) -> DecisionRequest:
    """A body as a decision request.

    Raises:
        SchemaRejected: naming every field that is missing, unknown or of the wrong type.
    """
    try:
        request = DecideRequest.model_validate(body)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)[:MAX_PROBLEMS]
        raise SchemaRejected(*map(_problem, found)) from None
    if not _is_state(request.state):
        raise SchemaRejected(Problem(pointer="/state", code="state_type", message=MESSAGES["state_type"]))
    policy = request.policy
    return DecisionRequest(
        state=request.state,
        rubric=request.rubric,
        instructions=request.instructions,
        entropy_threshold=policy.entropy_threshold,
        seed=policy.seed,
        deadline_seconds=None if policy.deadline_ms is None else policy.deadline_ms / 1000,
    )


def decide_response(decision: Decision) -> DecideResponse:
    """A decision as its caller sees it."""
    read = decision.read
    return DecideResponse(
        id=decision.id,
        model=decision.model.name,
        outcome=decision.outcome.value,
        decision=decision.value,
        answers={answer.question.id: _answer_response(answer) for answer in decision.answers},
        policy=PolicyResponse(
            reads=1,
            rounds=1,
            stop_reason=decision.stop_reason.value,
            max_entropy=max(answer.entropy for answer in decision.answers),
            seeds=[decision.seed],
        ),
        usage=UsageResponse(
            input_tokens=read.prompt_tokens,
            cached_tokens=read.cached_tokens,
            canvas_tokens=read.canvas_tokens,
            engine_steps=len(read.engine_steps),
        ),
        timing=TimingResponse(
            total_ms=_milliseconds(decision.total_seconds),
            queue_ms=_milliseconds(read.queue_seconds),
            engine_ms=_milliseconds(sum(step.seconds for step in read.engine_steps)),
        ),
        fingerprint=decision.model.fingerprint,
    )


def _answer_response(answer: Answer) -> AnswerResponse:
    options = answer.question.options
    return AnswerResponse(
        value=answer.value,
        outcome=answer.outcome.value,
        probability=answer.probability,
        probabilities={option.key: p for option, p in zip(options, answer.probabilities, strict=True)},
        entropy=answer.entropy,
        confidence=answer.confidence,
        margin=answer.margin,
        expected=answer.expected,
        agreement=1.0,
        reads=1,
    )


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _is_state(state: Json) -> bool:
    return bool(state.strip() if isinstance(state, str) else isinstance(state, Mapping | list) and state)


def _problem(error: Mapping[str, Any]) -> Problem:
    return Problem(pointer=pointer(*error["loc"]), code=error["type"], message=_message(error))


def _message(error: Mapping[str, Any]) -> str:
    code, limits = error["type"], error.get("ctx", {})
    if code in OUT_OF_RANGE:
        (bound,) = limits.values()
        return f"must be {code.replace('_', ' ')} {bound}"
    if code == "string_too_long":
        return f"may have {limits['max_length']} characters"
    return MESSAGES.get(code, "is not what this field takes")
