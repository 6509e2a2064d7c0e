"""The bodies of `/decide` and `/health`, as callers see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from app.canvas.policy import MOST_READS, Policy
from app.decisions import Decision, DecisionRequest
from app.errors import SchemaRejected
from app.plans import PlanRequest
from app.tenant import ANYBODY, Tenant

# The rule each pydantic error stands for. Pydantic's own messages may quote the input, so they are not used.
MESSAGES = {
    "missing": "this field is required",
    "extra_forbidden": "there is no such field",
    "string_type": "must be a string",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "state_type": "must be a string, an object or an array, and not empty",
    "list_type": "must be an array",
    "model_attributes_type": "must be an object",
    "union_tag_not_found": 'must have a "type"',
    "text_type": "must be text, an object, an array or null",
    "texts_type": "every description must be text, an object or an array",
}
# A body of nothing but unknown fields is answered with this many of them.
MAX_PROBLEMS = 100
M = TypeVar("M", bound=BaseModel)
# For the OpenAPI document; `check_state` and the rubric's compiler are what checks.
STATE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {"type": "object", "minProperties": 1},
        {"type": "array", "minItems": 1},
    ]
}
RUBRIC_SCHEMA: dict[str, Any] = {"type": "object"}
OUT_OF_RANGE = frozenset({"greater_than", "greater_than_equal", "less_than", "less_than_equal"})


class Wire(BaseModel):
    """Base of every body."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True, frozen=True)


class PolicyRequest(Wire):
    """How to read. Each field has a server default."""

    entropy_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    max_reads: Annotated[int, Field(ge=1, le=MOST_READS)] | None = None
    layout: Annotated[
        Literal["joint", "split", "isolated"],
        Field(description="All questions in one canvas; each in its own; each with nothing of the others in sight."),
    ] = "joint"
    order: Annotated[
        Literal["rubric_first", "state_first"],
        Field(description="What leads the prompt: requests that share it find it in the prefix cache."),
    ] = "rubric_first"
    rotate_options: Annotated[
        bool,
        Field(
            description="Shows the options in another order in every round, so that what an order favours averages out."
        ),
    ] = False
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)] | None = None
    deadline_ms: Annotated[int, Field(ge=1, le=3_600_000)] | None = None


class AskRequest(Wire):
    """What is asked, and how."""

    rubric: Any = Field(description="A JSON Schema of bounded questions.")
    instructions: str | None = Field(None, max_length=65_536, description="Put ahead of the questions.")
    policy: PolicyRequest = PolicyRequest()


class DecideRequest(AskRequest):
    """A state and a rubric."""

    # Not of every request: `/rubrics/check` says of anything what is wrong with it.
    rubric: Any = Field(description="A JSON Schema of bounded questions.", json_schema_extra=RUBRIC_SCHEMA)
    state: Any = Field(
        description="Text, a record or chat messages: what the questions are about.", json_schema_extra=STATE_SCHEMA
    )


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
    std_error: float | None = Field(description="Standard error of the probability over reads; null with one read.")
    agreement: Annotated[float, Field(description="Share of reads that say the same as all together.")]
    reads: int
    order_disagreement: float | None = Field(
        description="Total variation between orders of the options; null unless they were rotated."
    )
    label_mass: float | None = Field(
        description="Share of the vocabulary's probability that the labels had; null unless this was looked at."
    )
    temperature: Annotated[float, Field(description="What its logprobs were divided by; 1 is uncalibrated.")]


class PolicyResponse(Wire):
    """How it was read."""

    reads: int
    rounds: int
    stop_reason: Literal["entropy", "max_reads", "deadline", "stable"]
    entropy_threshold: Annotated[float, Field(description="Where neither the property nor the request says another.")]
    max_reads: int
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


def parse_decide_request(body: Json, tenant: Tenant = ANYBODY) -> DecisionRequest:
    """A body of this tenant's as a decision request.

    Raises:
        SchemaRejected: naming every field that is missing, unknown or of the wrong type.
    """
    request = parse_body(DecideRequest, body)
    check_state(request.state)
    return decision_request(request, tenant)


def decision_request(request: DecideRequest, tenant: Tenant) -> DecisionRequest:
    """What is to be decided, for this tenant."""
    policy = request.policy
    return DecisionRequest(
        state=request.state,
        asked=plan_request(request, tenant),
        entropy_threshold=policy.entropy_threshold,
        max_reads=policy.max_reads,
        rotates_options=policy.rotate_options,
        seed=policy.seed,
        deadline_seconds=None if policy.deadline_ms is None else policy.deadline_ms / 1000,
    )


def parse_body(model: type[M], body: Json, *, parts: Sequence[str] = ("policy",)) -> M:
    """A body as a model; `parts` are its fields that have fields in turn.

    Raises:
        SchemaRejected: naming every field that is missing, unknown or of the wrong type.
    """
    within = [(pointer(part), body.get(part)) for part in parts] if isinstance(body, Mapping) else []
    for place, fields in (("", body), *within):
        if isinstance(fields, Mapping | list) and len(fields) > MAX_PROBLEMS:  # each would be looked at to be refused
            message = "has far more fields than there are"
            raise SchemaRejected(Problem(pointer=place, code="too_many_fields", message=message))
    try:
        return model.model_validate(body)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False)[:MAX_PROBLEMS]
        raise SchemaRejected(*map(_problem, found)) from None


def check_state(state: Json, place: str = "/state") -> None:
    """Refuse what cannot be a state.

    Raises:
        SchemaRejected: it is neither text, nor an object, nor an array, or there is nothing in it.
    """
    if not (state.strip() if isinstance(state, str) else isinstance(state, Mapping | list) and state):
        raise SchemaRejected(Problem(pointer=place, code="state_type", message=MESSAGES["state_type"]))


def plan_request(request: AskRequest, tenant: Tenant) -> PlanRequest:
    """What is asked, for whom, and how it is laid out."""
    return PlanRequest(
        rubric=request.rubric,
        instructions=request.instructions,
        layout=Layout(request.policy.layout),
        order=Order(request.policy.order),
        tenant=tenant,
    )


def decide_response(decision: Decision) -> DecideResponse:
    """A decision as its caller sees it."""
    results = decision.results
    steps = [step for result in results for step in result.engine_steps]
    return DecideResponse(
        id=decision.id,
        model=decision.model.name,
        outcome="uncertain" if decision.outcome is Outcome.UNCERTAIN else "decided",
        decision=decision.value,
        answers={answer.question.id: _answer_response(answer, decision.policy) for answer in decision.answers},
        policy=PolicyResponse(
            reads=len(decision.seeds),
            rounds=decision.rounds,
            stop_reason=decision.stop_reason.value,
            entropy_threshold=decision.policy.entropy_threshold,
            max_reads=decision.policy.max_reads,
            max_entropy=max_entropy(decision.answers),
            seeds=list(decision.seeds),
        ),
        usage=UsageResponse(
            input_tokens=sum(result.prompt_tokens for result in results),
            cached_tokens=sum(result.cached_tokens for result in results),
            canvas_tokens=sum(result.canvas_tokens for result in results),
            engine_steps=len(steps),
        ),
        timing=TimingResponse(
            total_ms=_milliseconds(decision.total_seconds),
            queue_ms=_milliseconds(sum(result.queue_seconds for result in results)),
            engine_ms=_milliseconds(sum(step.seconds for step in steps)),
        ),
        fingerprint=decision.model.fingerprint,
    )


def problem_item(problem: Problem) -> ProblemItem:
    """One problem as its caller sees it."""
    return ProblemItem(pointer=problem.pointer, code=problem.code, message=problem.message)


def _answer_response(answer: Answer, policy: Policy) -> AnswerResponse:
    options, reading = answer.question.options, answer.reading
    return AnswerResponse(
        value=answer.value,
        outcome=answer.outcome.value,
        probability=reading.probability,
        probabilities={option.key: p for option, p in zip(options, reading.probabilities, strict=True)},
        entropy=reading.entropy,
        confidence=reading.confidence,
        margin=reading.margin,
        expected=reading.expected,
        std_error=answer.std_error,
        agreement=answer.agreement,
        reads=len(answer.pool.reads),
        order_disagreement=answer.pool.order_disagreement,
        label_mass=answer.pool.label_mass,
        temperature=policy.temperature(answer.question.kind),
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
    if code == "string_too_short":
        return "must not be empty"
    if code == "too_long":
        return f"may hold {limits['max_length']}"
    if code == "too_short":
        return f"must hold {limits['min_length']} or more"
    if code == "union_tag_invalid":
        return f"must have one of these types: {limits['expected_tags']}"
    return MESSAGES.get(code, "is not what this field takes")
