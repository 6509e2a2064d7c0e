"""The bodies of `/v1/systemone` and `/v1/models`, as TypeSafe's clients see them.

From the OpenAPI document that typesafe-sdk 0.7.5 is generated from, and jevcompat's SPEC.md 0.1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from app.canvas.errors import Problem
from app.canvas.json import Json
from app.canvas.levels import MAX_LEVELS, MIN_LEVELS
from app.decisions import Decision
from app.errors import NotOffered
from app.extensions import ExtendedAnswer, ExtendedResponse, IsolatedPolicy, extended_answer, extended_response
from app.questionnaire import Inquiry, Questionnaire, name_of, text_of
from app.tenant import ANYBODY, Tenant
from app.wire import (
    AnswerResponse,
    DecideRequest,
    Wire,
    check_state,
    decide_response,
    decision_request,
    parse_body,
)

# Whichever of TypeSafe's models a client names, this service's answers.
ALIAS, ALIASES = "jev-latest", "jev-"
MIN_OPTIONS, MAX_OPTIONS = 2, 255


def _check_text(value: Any) -> Any:
    if not isinstance(value, str | dict | list | None):
        raise PydanticCustomError("text_type", "not a text")
    return value


def _check_described(criteria: dict[str, Any]) -> dict[str, Any]:
    """All at once: of a hundred thousand wrong ones each would be written down before it is refused."""
    if not all(isinstance(text, str | dict | list | None) for text in criteria.values()):
        raise PydanticCustomError("text_type", "not a text")
    return criteria


def _check_levels(criteria: list[Any]) -> list[Any]:
    if not all(isinstance(text, str | dict | list) for text in criteria):
        raise PydanticCustomError("texts_type", "not a text")
    return criteria


_FORMS: list[dict[str, Any]] = [{"type": "string"}, {"type": "object"}, {"type": "array"}]
# Text, or a structure that says the same. As it was sent: a legend shows levels to their caller again.
Level = Annotated[Any, WithJsonSchema({"anyOf": _FORMS})]
Description = Annotated[Any, WithJsonSchema({"anyOf": [*_FORMS, {"type": "null"}]})]
Text = Annotated[Description, AfterValidator(_check_text)]


class Asked(Wire):
    """What questions of every type have. Other fields are ignored, as TypeSafe does it."""

    model_config = ConfigDict(extra="ignore")

    instructions: Text = None


class NoulCriteria(Wire):
    """What counts as yes, and what as no."""

    model_config = ConfigDict(extra="ignore")

    true: Text = None
    false: Text = None


class NoulQuestion(Asked):
    """Yes or no."""

    type: Literal["noul"]
    criteria: NoulCriteria | None = None


class ChoiceQuestion(Asked):
    """One of several options: what each means, by its name."""

    type: Literal["choice"]
    criteria: Annotated[
        dict[str, Description], Field(min_length=MIN_OPTIONS, max_length=MAX_OPTIONS), AfterValidator(_check_described)
    ]


class ScoreQuestion(Asked):
    """One of several levels: what each is like, from the lowest to the highest."""

    type: Literal["score"]
    criteria: Annotated[list[Level], Field(min_length=MIN_LEVELS, max_length=MAX_LEVELS), AfterValidator(_check_levels)]


Question = NoulQuestion | ChoiceQuestion | ScoreQuestion


class SystemOneRequest(Wire):
    """A state and questions about it. Fields that are not known are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: Annotated[str, Field(description="`jev-latest`, another of TypeSafe's names, or this service's model.")]
    state: Any = Field(description="A string, an object or an array: what the questions are about.")
    questions: Annotated[
        dict[Annotated[str, Field(min_length=1)], Annotated[Question, Field(discriminator="type")]],
        Field(min_length=1, description="By names that the model is not shown."),
    ]
    assets: Any = Field(None, description="Images, which this service does not read: 400.")
    instructions: str | None = Field(None, max_length=65_536, description="Onestep's: put ahead of the questions.")
    x_policy: IsolatedPolicy = IsolatedPolicy()


class _NoulAnswer(Wire):
    type: Literal["noul"]
    noul: float


class NoulAnswer(ExtendedAnswer, _NoulAnswer):
    """How probable yes is."""

    x_confidence: float


class _ChoiceAnswer(Wire):
    type: Literal["choice"]
    choice: str
    probabilities: dict[str, float]
    confidence: float


class ChoiceAnswer(ExtendedAnswer, _ChoiceAnswer):
    """The likeliest option."""


class _ScoreAnswer(Wire):
    type: Literal["score"]
    score: float
    legend: dict[str, Level]
    probabilities: dict[str, float]
    confidence: float


class ScoreAnswer(ExtendedAnswer, _ScoreAnswer):
    """The mean level."""


SystemOneAnswer = NoulAnswer | ChoiceAnswer | ScoreAnswer


class SystemOneUsage(Wire):
    """Tokens: of prompts, and of canvases."""

    input_tokens: int
    output_tokens: int


class _SystemOneResponse(Wire):
    model: str
    answers: dict[str, Annotated[SystemOneAnswer, Field(discriminator="type")]]
    usage: SystemOneUsage


class SystemOneResponse(ExtendedResponse, _SystemOneResponse):
    """One answer to each question, by its name."""


def parse_system_one_request(body: Json, model: str, tenant: Tenant = ANYBODY) -> Inquiry[Mapping[str, Question]]:
    """A body of this tenant's; `model` is what is served.

    Raises:
        SchemaRejected: naming every field that is missing or of the wrong type.
        NotOffered: it asks for another model, or for images to be read.
    """
    asked = parse_body(SystemOneRequest, body, parts=("questions", "x_policy"))
    check_state(asked.state)
    _check_offer(asked, model)
    questionnaire = _questionnaire(asked.questions)
    request = DecideRequest(
        state=asked.state, rubric=questionnaire.rubric, instructions=asked.instructions, policy=asked.x_policy
    )
    return Inquiry(request=decision_request(request, tenant), questionnaire=questionnaire, questions=asked.questions)


def system_one_response(questions: Mapping[str, Question], decision: Decision) -> SystemOneResponse:
    """A decision as its caller sees it."""
    response = decide_response(decision)
    answers = zip(questions.items(), response.answers.values(), strict=True)
    return SystemOneResponse(
        model=response.model,
        answers={name: _answer(question, answer) for (name, question), answer in answers},
        usage=SystemOneUsage(input_tokens=response.usage.input_tokens, output_tokens=response.usage.canvas_tokens),
        **extended_response(response),
    )


def _check_offer(asked: SystemOneRequest, model: str) -> None:
    if asked.model != model and not asked.model.startswith(ALIASES):
        message = "there is no such model here: GET /v1/models lists them"
        raise NotOffered(Problem(pointer="/model", code="unknown_model", message=message))
    if asked.assets is not None:
        raise NotOffered(Problem(pointer="/assets", code="no_images", message="this service does not read images"))


def _questionnaire(questions: Mapping[str, Question]) -> Questionnaire:
    made = Questionnaire()
    for name, question in questions.items():
        place, text = ("questions", name, question.type), text_of(question.instructions)
        match question:
            case NoulQuestion(criteria=criteria):
                yes, no = (criteria.true, criteria.false) if criteria else (None, None)
                made.ask_yes_no(place, text, yes=text_of(yes), no=text_of(no))
            case ChoiceQuestion(criteria=criteria):
                described = [(name_of(option), text_of(about)) for option, about in criteria.items()]
                made.ask_choice(place, text, "criteria", list(criteria), described)
            case ScoreQuestion(criteria=criteria):
                made.ask_score(place, text, "criteria", list(map(text_of, criteria)))
    return made


def _answer(question: Question, answer: AnswerResponse) -> SystemOneAnswer:
    extensions, probabilities = extended_answer(answer), list(answer.probabilities.values())
    match question:
        case NoulQuestion():
            return NoulAnswer(type="noul", noul=probabilities[0], x_confidence=answer.confidence, **extensions)
        case ChoiceQuestion(criteria=criteria):
            names = list(criteria)
            return ChoiceAnswer(
                type="choice",
                choice=names[answer.value],
                probabilities=dict(zip(names, probabilities, strict=True)),
                confidence=answer.confidence,
                **extensions,
            )
        case ScoreQuestion(criteria=levels):
            return _score_answer(levels, answer, extensions)


def _score_answer(levels: Sequence[Any], answer: AnswerResponse, extensions: Mapping[str, Any]) -> ScoreAnswer:
    assert answer.expected is not None, "a score without a mean; this is a bug"
    return ScoreAnswer(
        type="score",
        score=answer.expected,
        legend={str(number): level for number, level in enumerate(levels)},
        probabilities=answer.probabilities,
        confidence=answer.confidence,
        **extensions,
    )
