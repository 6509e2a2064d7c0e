"""The bodies of `/v1/decisions`, OpenAI's Decisions API, as the `openai` client 3.57 sends and reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, FailFast, Field, StrictBool, StrictStr

from app.canvas.errors import Problem
from app.canvas.json import Json
from app.canvas.levels import MAX_LEVELS, MIN_LEVELS
from app.decisions import Decision
from app.errors import NotOffered
from app.extensions import ExtendedAnswer, ExtendedResponse, IsolatedPolicy, extended_answer, extended_response
from app.openai_input import state_of, text_of_parts
from app.questionnaire import Inquiry, Questionnaire, name_of
from app.tenant import ANYBODY, Tenant
from app.wire import (
    AnswerResponse,
    DecideRequest,
    UsageResponse,
    Wire,
    check_state,
    decide_response,
    decision_request,
    parse_body,
)

# OpenAI's only model that decides: a client that names it gets this service's answers.
ALIAS = "gpt-6-luna"
MIN_OPTIONS, MAX_OPTIONS = 2, 255

Parts = Annotated[Any, Field(description="Text, or a list of parts that are text or JSON.")]


class Asked(Wire):
    """What questions of every type have."""

    model_config = ConfigDict(extra="ignore")

    name: str | None = None
    instructions: Parts


class PredicateQuestion(Asked):
    """Whether something is so."""

    type: Literal["predicate"]


class Choosable(Wire):
    """One option. Text and booleans are different values, whatever they are written like."""

    model_config = ConfigDict(extra="ignore")

    value: StrictStr | StrictBool
    description: str | None = None


class ChoiceQuestion(Asked):
    """One of several options."""

    type: Literal["choice"]
    choices: Annotated[list[Choosable], Field(min_length=MIN_OPTIONS, max_length=MAX_OPTIONS), FailFast()]


class Level(Wire):
    """One level."""

    model_config = ConfigDict(extra="ignore")

    label: str
    description: str | None = None


class ScoreQuestion(Asked):
    """One of several levels, from the lowest to the highest."""

    type: Literal["score"]
    levels: Annotated[list[Level], Field(min_length=MIN_LEVELS, max_length=MAX_LEVELS), FailFast()]


Question = PredicateQuestion | ChoiceQuestion | ScoreQuestion


class DecisionsRequest(Wire):
    """An input and questions about it."""

    model: Annotated[str, Field(description="`gpt-6-luna`, or this service's model.")]
    input: Any = Field(description="Text, or messages and tool calls: what the questions are about.")
    questions: Annotated[list[Annotated[Question, Field(discriminator="type")]], Field(min_length=1)]
    prompt_cache_key: Any = Field(None, description="Taken and not used: tenants' caches are parted by their keys.")
    prompt_cache_options: Any = Field(None, description="Taken and not used: every prompt is cached.")
    safety_identifier: str | None = Field(None, max_length=128, description="Taken and not used.")
    x_policy: IsolatedPolicy = IsolatedPolicy()


class _PredicateAnswer(Wire):
    type: Literal["predicate"]
    name: str | None
    probability: float


class PredicateAnswer(ExtendedAnswer, _PredicateAnswer):
    """How probable it is that it is so."""

    x_confidence: float


class ChoiceProbability(Wire):
    """Of one option."""

    value: StrictStr | StrictBool
    probability: float


class _ValueAnswer(Wire):
    type: Literal["choice"]
    name: str | None
    choice: StrictStr | StrictBool
    probabilities: list[ChoiceProbability]
    confidence: float


class ValueAnswer(ExtendedAnswer, _ValueAnswer):
    """The likeliest option."""


class LevelProbability(Wire):
    """Of one level."""

    value: int
    label: str
    probability: float


class _LevelAnswer(Wire):
    type: Literal["score"]
    name: str | None
    score: float
    probabilities: list[LevelProbability]
    confidence: float


class LevelAnswer(ExtendedAnswer, _LevelAnswer):
    """The mean level."""


DecisionsAnswer = PredicateAnswer | ValueAnswer | LevelAnswer


class InputTokensDetails(Wire):
    """Of the input."""

    cached_tokens: int
    cache_write_tokens: Annotated[int, Field(description="That are paid for: none.")] = 0


class OutputTokensDetails(Wire):
    """Of the output."""

    reasoning_tokens: Annotated[int, Field(description="None: nothing is generated.")] = 0


class DecisionsUsage(Wire):
    """Tokens: of prompts, and of canvases."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails = OutputTokensDetails()
    total_tokens: int


class _DecisionsResponse(Wire):
    model: str
    answers: list[Annotated[DecisionsAnswer, Field(discriminator="type")]]
    usage: DecisionsUsage


class DecisionsResponse(ExtendedResponse, _DecisionsResponse):
    """One answer to each question, in their order."""


def parse_decisions_request(body: Json, model: str, tenant: Tenant = ANYBODY) -> Inquiry[Sequence[Question]]:
    """A body of this tenant's; `model` is what is served.

    Raises:
        SchemaRejected: naming every field that is missing, unknown or of the wrong type.
        NotOffered: it asks for another model, or for images to be read.
    """
    asked = parse_body(DecisionsRequest, body, parts=("questions", "x_policy"))
    if asked.model not in (model, ALIAS):
        raise NotOffered(Problem(pointer="/model", code="unknown_model", message="there is no such model here"))
    state = state_of(asked.input)
    check_state(state, "/input")
    questionnaire = _questionnaire(asked.questions)
    request = DecideRequest(state=state, rubric=questionnaire.rubric, instructions=None, policy=asked.x_policy)
    return Inquiry(request=decision_request(request, tenant), questionnaire=questionnaire, questions=asked.questions)


def decisions_response(questions: Sequence[Question], decision: Decision) -> DecisionsResponse:
    """A decision as its caller sees it."""
    response = decide_response(decision)
    answers = zip(questions, response.answers.values(), strict=True)
    return DecisionsResponse(
        model=response.model,
        answers=[_answer(question, answer) for question, answer in answers],
        usage=_usage(response.usage),
        **extended_response(response),
    )


def _questionnaire(questions: Sequence[Question]) -> Questionnaire:
    made = Questionnaire()
    for number, question in enumerate(questions):
        place = ("questions", number)
        text = text_of_parts(question.instructions, (*place, "instructions"))
        match question:
            case PredicateQuestion():
                made.ask_yes_no(place, text)
            case ChoiceQuestion(choices=choices):
                described = [(name_of(one.value), one.description or "") for one in choices]
                made.ask_choice(place, text, "choices", range(len(choices)), described)
            case ScoreQuestion(levels=levels):
                made.ask_score(place, text, "levels", [_shown(level) for level in levels])
    return made


def _shown(level: Level) -> str:
    return f"{level.label}: {level.description}" if level.description else level.label


def _answer(question: Question, answer: AnswerResponse) -> DecisionsAnswer:
    extensions, probabilities = extended_answer(answer), list(answer.probabilities.values())
    match question:
        case PredicateQuestion(name=name):
            confidence = answer.confidence
            return PredicateAnswer(
                type="predicate", name=name, probability=probabilities[0], x_confidence=confidence, **extensions
            )
        case ChoiceQuestion(name=name, choices=choices):
            return ValueAnswer(
                type="choice",
                name=name,
                choice=choices[answer.value].value,
                probabilities=[
                    ChoiceProbability(value=one.value, probability=p)
                    for one, p in zip(choices, probabilities, strict=True)
                ],
                confidence=answer.confidence,
                **extensions,
            )
        case ScoreQuestion(name=name, levels=levels):
            return _level_answer(name, levels, answer, extensions)


def _level_answer(
    name: str | None, levels: Sequence[Level], answer: AnswerResponse, extensions: Mapping[str, Any]
) -> LevelAnswer:
    assert answer.expected is not None, "a score without a mean; this is a bug"
    found = enumerate(zip(levels, answer.probabilities.values(), strict=True))
    return LevelAnswer(
        type="score",
        name=name,
        score=answer.expected,
        probabilities=[LevelProbability(value=i, label=level.label, probability=p) for i, (level, p) in found],
        confidence=answer.confidence,
        **extensions,
    )


def _usage(usage: UsageResponse) -> DecisionsUsage:
    return DecisionsUsage(
        input_tokens=usage.input_tokens,
        input_tokens_details=InputTokensDetails(cached_tokens=usage.cached_tokens),
        output_tokens=usage.canvas_tokens,
        total_tokens=usage.input_tokens + usage.canvas_tokens,
    )
