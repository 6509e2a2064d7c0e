"""The bodies of `/decide` and `/health`, as callers see them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)

from app.canvas.decision import Answer, Outcome, max_entropy
from app.canvas.errors import Problem
from app.canvas.json import Json, pointer
from app.canvas.noise import MAX_SEED
from app.canvas.plan import Layout, Order
from app.decisions import Decision, DecisionRequest
from app.errors import SchemaRejected
from app.plans import PlanRequest

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
    "state_type": "must be a string, an object or an array, and not empty",
}
# A body of nothing but unknown fields is answered with this many of them.
MAX_PROBLEMS = 100
M = TypeVar("M", bound=BaseModel)
OUT_OF_RANGE = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


class Wire(BaseModel):
    """Base of every body."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True, frozen=True)


class PolicyRequest(Wire):
    """How to read. Each field has a server default."""

    entropy_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    max_reads: Annotated[int, Field(ge=1, le=1)] = 1
    layout: Annotated[
        Literal["joint", "split", "isolated"],
        Field(description="All questions in one canvas; each in its own; each with nothing of the others in sight."),
    ] = "joint"
    order: Annotated[
        Literal["rubric_first", "state_first"],
        Field(description="What leads the prompt: requests that share it find it in the prefix cache."),
    ] = "rubric_first"
    rotate_options: Literal[False] = False
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None


class AskRequest(Wire):
    """What is asked, and how."""

    rubric: Any = Field(description="A JSON Schema of bounded questions.")
    instructions: str | None = Field(None, max_length=65_536, description="Put ahead of the questions.")
    policy: PolicyRequest = PolicyRequest()


class DecideRequest(AskRequest):
    """A state and a rubric."""

    state: Any = Field(description="A string, an object, an array, or chat messages: what the questions are about.")


class AnswerResponse(Wire):
    """The answer to one question."""

    value: Any = Field(
        description="What the decision holds; null if skipped. For an object that may be null: whether it is there."
    )
    outcome: Literal["decided", "uncertain", "skipped"]
    probability: float = Field(
        description="Of the likeliest option, whether or not it is skipped. For an array: of its least sure option."
    )
    probabilities: dict[str, float] = Field(
        description="By option, summing to 1. For an array: of each option to be in it."
    )
    entropy: float
    confidence: float
    margin: float
    expected: float | None = Field(None, description="Mean level; scores only.", exclude_if=lambda level: level is None)
    std_error: float | None = None
    agreement: float
    reads: int
    label_mass: float | None = None


class PolicyResponse(Wire):
    """How it was read."""

    reads: int
    rounds: int
    stop_reason: Literal["entropy", "max_reads"]
    max_entropy: float
    seeds: list[int]


class UsageResponse(Wire):
    """What it cost."""

    input_tokens: int
    cached_tokens: int
    canvas_tokens: int
    engine_steps: int


class TimingResponse(Wire):
    """Where the time went, in milliseconds."""

    total_ms: float
    queue_ms: float
    engine_ms: float


class DecideResponse(Wire):
    """A decision."""

    id: str
    model: str
    outcome: Literal["decided", "uncertain"]
    decision: dict[str, Any]
    answers: dict[str, AnswerResponse]
    policy: PolicyResponse
    usage: UsageResponse
    timing: TimingResponse
    fingerprint: str


class ProblemItem(Wire):
    """One thing wrong with a request."""

    pointer: str
    code: str
    message: str


class ProblemDocument(Wire):
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
    request = parse_body(DecideRequest, body)
    check_state(request.state)
    policy = request.policy
    return DecisionRequest(
        state=request.state,
        asked=plan_request(request),
        entropy_threshold=policy.entropy_threshold,
        seed=policy.seed,
        deadline_seconds=None if policy.deadline_ms is None else policy.deadline_ms / 1000,
    )


def parse_body(model: type[M], body: Json) -> M:
    """A body as a model.

    Raises:
        SchemaRejected: naming every field that is missing, unknown or of the wrong type.
    """
    for place, fields in (("", body), ("/policy", body.get("policy") if isinstance(body, Mapping) else None)):
        if isinstance(fields, Mapping) and len(fields) > MAX_PROBLEMS:  # each would be looked at to be refused
            message = "has far more fields than there are"
            raise SchemaRejected(Problem(pointer=place, code="too_many_fields", message=message))
    try:
        return model.model_validate(body)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)[:MAX_PROBLEMS]
        raise SchemaRejected(*map(_problem, found)) from None


def check_state(state: Json) -> None:
    """Refuse what cannot be a state.

    Raises:
        SchemaRejected: it is neither text, nor an object, nor an array, or there is nothing in it.
    """
    if not (state.strip() if isinstance(state, str) else isinstance(state, Mapping | list) and state):
        raise SchemaRejected(Problem(pointer="/state", code="state_type", message=MESSAGES["state_type"]))


def plan_request(request: AskRequest) -> PlanRequest:
    """What is asked, and how it is laid out."""
    return PlanRequest(
        rubric=request.rubric,
        instructions=request.instructions,
        layout=Layout(request.policy.layout),
        order=Order(request.policy.order),
    )


def decide_response(decision: Decision) -> DecideResponse:
    """A decision as its caller sees it."""
    read = decision.read
    return DecideResponse(
        id=decision.id,
        model=decision.model.name,
        outcome="uncertain" if decision.outcome is Outcome.UNCERTAIN else "decided",
        decision=decision.value,
        answers={answer.question.id: _answer_response(answer) for answer in decision.answers},
        policy=PolicyResponse(
            reads=1,
            rounds=1,
            stop_reason=decision.stop_reason.value,
            max_entropy=max_entropy(decision.answers),
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


def problem_item(problem: Problem) -> ProblemItem:
    """One problem as its caller sees it."""
    return ProblemItem(pointer=problem.pointer, code=problem.code, message=problem.message)


def _answer_response(answer: Answer) -> AnswerResponse:
    options, reading = answer.question.options, answer.reading
    return AnswerResponse(
        value=None if answer.outcome is Outcome.SKIPPED else reading.value,
        outcome=answer.outcome.value,
        probability=reading.probability,
        probabilities={option.key: p for option, p in zip(options, reading.probabilities, strict=True)},
        entropy=reading.entropy,
        confidence=reading.confidence,
        margin=reading.margin,
        expected=reading.expected,
        agreement=1.0,
        reads=1,
    )


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _problem(error: Mapping[str, Any]) -> Problem:
    return Problem(pointer=pointer(*error["loc"]), code=error["type"], message=_message(error))


def _message(error: Mapping[str, Any]) -> str:
    code, limits = error["type"], error.get("ctx", {})
    if code in OUT_OF_RANGE:
        (bound,) = limits.values()
        return f"must be {code.replace('_', ' ').replace('than equal', 'than or equal to')} {bound}"
    if code == "literal_error":
        return f"must be {limits['expected']}".replace("False", "false")  # our own words: what this field takes
    if code == "string_too_long":
        return f"may have {limits['max_length']} characters"
    return MESSAGES.get(code, "is not what this field takes")
