"""The bodies of `/rubrics/check`, as callers see them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from app.canvas.inspection import Inspection, ShownQuestion
from app.canvas.json import Json
from app.checks import Check, CheckRequest
from app.tenant import ANYBODY, Tenant
from app.wire import AskRequest, ProblemItem, Wire, check_state, parse_body, plan_request, problem_item


class RubricCheckRequest(AskRequest):
    """A rubric, laid out as `/decide` would do it. Nothing is read."""

    state: Annotated[Any, Field(description="Optional: counts the tokens of this state too.")] = None


class LabelItem(Wire):
    """A label of a slot, and the option it stands for."""

    option: Annotated[str, Field(description="The option's key; of an array each option is `true` or `false`.")]
    text: str
    label: str


class QuestionItem(Wire):
    """A question as it is put to the model."""

    id: str
    kind: str
    text: str
    options: list[str]
    labels: list[LabelItem]
    lines: Annotated[list[int], Field(description="Its lines of the canvas, by number.")]
    is_conditional: bool


class CanvasItem(Wire):
    """A canvas as the model sees it, ▢ for an open slot."""

    questions: list[str]
    suffix: Annotated[str, Field(description="Stands between the prompt and this canvas; no other canvas sees it.")]
    suffix_tokens: int
    text: str
    width_tokens: int
    reads: int


class PromptItem(Wire):
    """The prompt as the model sees it, control tokens included."""

    before_state: str
    state: str | None
    after_state: str
    tokens: Annotated[int, Field(description="Without the state.")]
    state_tokens: int | None
    max_state_tokens: Annotated[int, Field(description="How long a state may be.")]


class RubricCheckResponse(Wire):
    """What a rubric becomes, and everything wrong with it."""

    is_accepted: bool
    problems: list[ProblemItem]
    warnings: Annotated[list[ProblemItem], Field(description="Allowed, and probably not meant.")]
    questions: list[QuestionItem]
    prompt: PromptItem | None
    canvases: list[CanvasItem]


def parse_check_request(body: Json, tenant: Tenant = ANYBODY) -> CheckRequest:
    """A body of this tenant's as a request to look at a rubric.

    Raises:
        SchemaRejected: naming every field that is missing, unknown or of the wrong type.
    """
    request = parse_body(RubricCheckRequest, body)
    if request.state is not None:
        check_state(request.state)
    return CheckRequest(asked=plan_request(request, tenant), state=request.state, max_reads=request.policy.max_reads)


def check_response(check: Check) -> RubricCheckResponse:
    """What came of a check, as its caller sees it."""
    inspection = check.inspection
    return RubricCheckResponse(
        is_accepted=not check.problems,
        problems=[problem_item(problem) for problem in check.problems],
        warnings=[problem_item(remark) for remark in inspection.remarks] if inspection else [],
        questions=[_question(shown) for shown in inspection.questions] if inspection else [],
        prompt=_prompt(inspection, check) if inspection else None,
        canvases=_canvases(inspection) if inspection else [],
    )


def _question(shown: ShownQuestion) -> QuestionItem:
    question = shown.question
    return QuestionItem(
        id=question.id,
        kind=question.kind,
        text=question.text,
        options=[option.key for option in question.options],
        labels=[LabelItem(option=option.key, text=option.text, label=label) for option, label in shown.labels],
        lines=list(shown.lines),
        is_conditional=shown.is_conditional,
    )


def _prompt(inspection: Inspection, check: Check) -> PromptItem:
    return PromptItem(
        before_state=inspection.before_state,
        state=check.state,
        after_state=inspection.after_state,
        tokens=inspection.prompt_tokens,
        state_tokens=check.state_tokens,
        max_state_tokens=inspection.max_state_tokens,
    )


def _canvases(inspection: Inspection) -> list[CanvasItem]:
    return [
        CanvasItem(
            questions=list(canvas.questions),
            suffix=canvas.suffix,
            suffix_tokens=canvas.suffix_tokens,
            text=canvas.text,
            width_tokens=canvas.width_tokens,
            reads=canvas.reads,
        )
        for canvas in inspection.canvases
    ]
