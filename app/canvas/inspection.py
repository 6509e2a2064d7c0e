"""What a rubric becomes: the texts that the model sees, and what its author may want to know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from app.canvas.branch import PlannedBranch
from app.canvas.condition import Condition
from app.canvas.errors import Problem
from app.canvas.json import pointer
from app.canvas.kinds.boolean import Boolean, Presence
from app.canvas.kinds.choice import Choice
from app.canvas.kinds.score import Score
from app.canvas.label import MAX_LABELS_PER_READ
from app.canvas.layout import canvas_text
from app.canvas.option import Option
from app.canvas.plan import Plan
from app.canvas.question import Kind, Question
from app.canvas.tokenizer import Tokenizer

# What is asked of these kinds is not in their options.
SAY_NOTHING = frozenset({Kind.BOOLEAN, Kind.SCORE, Kind.PROBABILITY})
# Stands for an open slot.
SLOT = "▢"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQuestion:
    """A question as it is put.

    Attributes:
        labels: per option of a slot, its label.
        lines: the numbers of its lines.
        is_conditional: whether it can be skipped.
    """

    question: Question
    labels: tuple[tuple[Option, str], ...]
    lines: tuple[int, ...]
    is_conditional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCanvas:
    """A canvas, and what stands between it and the shared prompt.

    Attributes:
        reads: how many branches read it: several if it holds more labels than one carries.
    """

    suffix: str
    suffix_tokens: int
    text: str
    width_tokens: int
    questions: tuple[str, ...]
    reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A plan as its author may look at it.

    Attributes:
        before_state, after_state: the shared prompt, control tokens included.
        prompt_tokens: of both.
        max_state_tokens: how long a state may be.
        remarks: what is allowed and probably not meant.
    """

    questions: tuple[ShownQuestion, ...]
    before_state: str
    after_state: str
    prompt_tokens: int
    max_state_tokens: int
    canvases: tuple[ShownCanvas, ...]
    remarks: tuple[Problem, ...]


def inspect(plan: Plan, tokenizer: Tokenizer, max_model_len: int) -> Inspection:
    """Look at a plan."""
    frame = plan.frame
    prompt_tokens = len(frame.around(()))
    return Inspection(
        questions=tuple(_questions(plan)),
        before_state=tokenizer.decode(frame.before),
        after_state=tokenizer.decode(frame.after),
        prompt_tokens=prompt_tokens,
        max_state_tokens=max_model_len - prompt_tokens - plan.widest_tokens,
        canvases=tuple(_canvases(plan, tokenizer)),
        remarks=tuple(dict.fromkeys(_remarks(plan))),
    )


def _questions(plan: Plan) -> Iterator[ShownQuestion]:
    conditional = _conditional_paths(plan)
    numbers = _numbers(plan)
    for index, (question, labels) in enumerate(zip(plan.questions, plan.labels, strict=True)):
        named = zip(question.slot_options, labels, strict=True)
        yield ShownQuestion(
            question=question,
            labels=tuple((option, label.text) for option, label in named),
            lines=tuple(numbers[index, line] for line in range(question.lines)),
            is_conditional=question.path in conditional,
        )


def _conditional_paths(plan: Plan) -> set[tuple[str, ...]]:
    """Where the decision may hold nothing: under a condition, or in an object that may not be there."""
    found: set[tuple[str, ...]] = set()
    absent: set[tuple[str, ...]] = set()
    for field in plan.rubric.fields:
        if field.conditions or field.path[:-1] in found | absent:
            found.add(field.path)
        if isinstance(field.content, Presence):
            absent.add(field.path)
    return found


def _numbers(plan: Plan) -> dict[tuple[int, int], int]:
    """The number that the canvas shows for each question and line."""
    return {
        (slot.question, slot.line): branch.canvas.first + branch.canvas.slots.index(slot.position)
        for branch in plan.branches
        for slot in branch.slots
    }


def _canvases(plan: Plan, tokenizer: Tokenizer) -> Iterator[ShownCanvas]:
    for parts in _by_canvas(plan):
        canvas, suffix = parts[0].canvas, parts[0].suffix_token_ids
        held = dict.fromkeys(slot.question for part in parts for slot in part.slots)
        ending = tokenizer.decode(canvas.token_ids[canvas.slots[-1] + 1 :])
        text = canvas_text(SLOT, canvas.first, len(canvas.slots))
        yield ShownCanvas(
            suffix=tokenizer.decode(suffix),
            suffix_tokens=len(suffix),
            text=text.rstrip("\n") + ending,
            width_tokens=canvas.width,
            questions=tuple(plan.questions[index].id for index in held),
            reads=len(parts),
        )


def _by_canvas(plan: Plan) -> Iterator[tuple[PlannedBranch, ...]]:
    """The branches of each canvas: several if it is read in parts."""
    for _, branches in groupby(plan.branches, lambda branch: id(branch.canvas)):
        yield tuple(branches)


def _remarks(plan: Plan) -> Iterator[Problem]:
    """What the compiler noticed, and what only shows when all questions are laid out."""
    yield from plan.rubric.remarks
    sharing = _sharing_labels(plan)
    texts = Counter((question.text, question.options) for question in plan.questions)
    places = {field.path: pointer(*field.place) for field in plan.rubric.fields}
    for index, (question, labels) in enumerate(zip(plan.questions, plan.labels, strict=True)):
        for code, message in _remarks_on(question, is_twin=texts[question.text, question.options] > 1):
            yield Problem(pointer=places[question.path], code=code, message=message)
        if len(labels) > MAX_LABELS_PER_READ:
            message = f"more than {MAX_LABELS_PER_READ} options take more than one read"
            yield Problem(pointer=places[question.path], code="read_in_parts", message=message)
        if index in sharing:
            message = (
                "shares labels with another question of its canvas, so one may copy the other: try the split layout"
            )
            yield Problem(pointer=places[question.path], code="shared_labels", message=message)
    for condition in _idle_conditions(plan):
        message = "holds for every value of the property that it looks at, or for none"
        yield Problem(pointer=pointer(*condition.place), code="idle_condition", message=message)


def _remarks_on(question: Question, *, is_twin: bool) -> Iterator[tuple[str, str]]:
    """Codes and messages about one question's text."""
    if not question.own_text:
        message = f'the model is asked nothing but "{question.default_text}": give it a title or a description'
        yield "no_text", message
    elif question.kind in SAY_NOTHING and _letters(question.own_text) == _letters(question.path[-1]):
        yield "only_a_name", "the model is asked nothing but the property's name: give it a title or a description"
    if is_twin:
        yield "same_text", "another question reads the same: the model cannot tell which is which"


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _idle_conditions(plan: Plan) -> Iterator[Condition]:
    """Conditions on one choice that no option, or every option, meets."""
    choices = {field.path: field.content for field in plan.rubric.fields if not field.conditions}
    seen: set[int] = set()
    for field in plan.rubric.fields:
        for condition in (one for every in field.conditions for one in every if id(one) not in seen):
            seen.add(id(condition))
            names = _only_mention(condition)
            asked = choices.get((*field.path[:-1], *names))
            if isinstance(asked, Choice | Boolean | Score) and not isinstance(asked, Presence):
                met = {condition.validator.is_valid({names[0]: option.value}) for option in asked.options}
                if len(met) == 1:
                    yield condition


def _only_mention(condition: Condition) -> tuple[str, ...]:
    """The one property that a condition looks at; none if it looks at more, or only asks whether it is there."""
    schema = condition.validator.schema
    looks_inside = isinstance(schema, Mapping) and "properties" in schema
    (names,) = condition.mentions if len(condition.mentions) == 1 else ((),)
    return names if looks_inside and len(names) == 1 else ()


def _sharing_labels(plan: Plan) -> set[int]:
    """The questions with labels that an earlier one in their canvas has too."""
    found: set[int] = set()
    for parts in _by_canvas(plan):
        first_user: dict[int, int] = {}
        held = sorted({slot.question for part in parts for slot in part.slots})
        for question in held:
            for label in plan.labels[question]:
                if first_user.setdefault(label.token_id, question) != question:
                    found.add(question)
    return found
