"""What an author is shown of a rubric is what is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from app.canvas.inspection import SLOT, Inspection, inspect
from app.canvas.label import MAX_LABELS_PER_READ
from app.canvas.plan import Layout, Order, Planner
from tests.cases import REFILL, TOPIC, rubric

NESTED: dict[str, Any] = {
    **rubric(
        topic=TOPIC,
        symptoms={"type": "array", "title": "Symptoms", "items": {"enum": ["cough", "fever"]}},
        contact={
            "anyOf": [{"type": "object", "title": "Contact", "properties": {"who": TOPIC}}, {"type": "null"}],
        },
        refill=REFILL,
    ),
    "if": {"properties": {"refill": {"const": True}}},
    "then": {"properties": {"drug": {"enum": ["x", "y"]}}},
}


def look(planner: Planner, schema: dict[str, Any], **options: Any) -> Inspection:
    """What becomes of a rubric."""
    plan = planner.plan(schema, "Be strict.", **options)
    return inspect(plan, planner.tokenizer, planner.max_model_len)


def test_questions_in_order(planner: Planner) -> None:
    """Ids, labels, lines, and whether they can be skipped: below what may be absent, and under a condition."""
    shown = look(planner, NESTED).questions
    assert [one.question.id for one in shown] == ["topic", "symptoms", "contact", "contact/who", "refill", "drug"]
    assert [one.lines for one in shown] == [(1,), (2, 3), (4,), (5,), (6,), (7,)]
    assert [one.is_conditional for one in shown] == [False, False, False, True, False, True]
    labels = [[(option.key, label) for option, label in one.labels] for one in shown]
    assert labels[0] == [("billing", "A"), ("symptoms", "B"), ("scheduling", "C"), ("pharmacy", "D")]
    assert labels[1] == [("true", "E"), ("false", "F")]


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("order", Order)
def test_the_prompt_is_the_one_that_is_read(planner: Planner, layout: Layout, order: Order) -> None:
    """Texts and lengths: put around a state they are the prompt."""
    seen = look(planner, NESTED, layout=layout, order=order)
    plan = planner.plan(NESTED, "Be strict.", layout=layout, order=order)
    read = planner.seed_read(plan, "Hello.", 1)
    assert planner.tokenizer.decode(read.prompt_token_ids) == f"{seen.before_state}Hello.{seen.after_state}"
    state_tokens = len(planner.tokenizer.encode("Hello."))
    assert seen.prompt_tokens == len(read.prompt_token_ids) - state_tokens
    widest = max(canvas.suffix_tokens + canvas.width_tokens for canvas in seen.canvases)
    assert seen.prompt_tokens + seen.max_state_tokens + widest == planner.max_model_len


@pytest.mark.parametrize("layout", Layout)
def test_canvases_are_the_ones_that_are_read(planner: Planner, layout: Layout) -> None:
    """Text, width and suffix; with labels for its slots a canvas is what the tokenizer makes of its text."""
    plan = planner.plan(NESTED, layout=layout)
    seen = inspect(plan, planner.tokenizer, planner.max_model_len).canvases
    assert [one.width_tokens for one in seen] == [branch.canvas.width for branch in plan.branches]
    for shown, branch in zip(seen, plan.branches, strict=True):
        assert planner.tokenizer.decode(branch.canvas.token_ids).startswith(shown.text.split(SLOT)[0])
        assert shown.text.count(SLOT) == len(branch.canvas.slots)
        assert shown.text.endswith("<turn|><pad>")
        assert shown.suffix == planner.tokenizer.decode(branch.suffix_token_ids)


def test_a_wide_rubric_shows_all_its_canvases(planner: Planner) -> None:
    """Every question is in one."""
    asked = rubric(**{f"q{n}": REFILL for n in range(30)})
    seen = look(planner, asked).canvases
    assert [id for canvas in seen for id in canvas.questions] == [f"q{n}" for n in range(30)]
    assert len(seen) == 3
    assert max(canvas.width_tokens for canvas in seen) <= planner.canvas_length


def remarks(planner: Planner, schema: dict[str, Any], **options: Any) -> list[tuple[str, str]]:
    """Pointer and code of every remark."""
    return [(one.pointer, one.code) for one in look(planner, schema, **options).remarks]


ASKED_WELL = {"type": "boolean", "title": "Is it late?"}


@dataclass(frozen=True)
class Remarked:
    """A rubric that is allowed, and what is remarked on in it: pointer below the rubric, and code."""

    id: str
    schema: dict[str, Any]
    remarks: tuple[tuple[str, str], ...] = ()


def conditional(condition: Any, **asked: Any) -> dict[str, Any]:
    """A rubric with a question under a condition."""
    then = {"properties": {"then": {"type": "boolean", "title": "And then?"}}}
    return {**rubric(**asked), "if": condition, "then": then, "else": {"properties": {"else": TOPIC}}}


REMARKED = (
    Remarked("nothing", rubric(a=ASKED_WELL)),
    Remarked(
        "no text, by condition too",
        NESTED,
        (("/properties/contact", "only_a_name"), ("/then/properties/drug", "no_text")),
    ),
    Remarked("no text", rubric(**{"a/b": {"type": "boolean"}}), (("/properties/a~1b", "no_text"),)),
    Remarked("a description will do", rubric(a={"type": "boolean", "description": "Is it late?"})),
    Remarked(
        "a name is no question",
        rubric(needs_call={"type": "boolean", "title": "Needs Call"}),
        (("/properties/needs_call", "only_a_name"),),
    ),
    Remarked("a name with options that tell", rubric(topic=TOPIC)),
    Remarked("a name that is explained", rubric(late={"type": "boolean", "title": "Late", "description": "Is it?"})),
    Remarked(
        "two questions that read the same",
        rubric(a=ASKED_WELL, b=ASKED_WELL),
        (("/properties/a", "same_text"), ("/properties/b", "same_text")),
    ),
    Remarked(
        "misspelt keywords",
        {**rubric(a={**ASKED_WELL, "nullable": True, "x-note": 1, "x-option-description": {}}), "requierd": ["a"]},
        (
            ("/requierd", "ignored_keyword"),
            ("/properties/a/nullable", "ignored_keyword"),
            ("/properties/a/x-option-description", "ignored_keyword"),
        ),
    ),
    Remarked(
        "annotations",
        {**rubric(a={**ASKED_WELL, "deprecated": True, "default": None, "examples": []}), "$comment": "", "$id": "a"},
    ),
    Remarked(
        "a list that may be null",
        rubric(a={"title": "Which?", "anyOf": [{"type": "array", "items": {"enum": ["x"]}}, {"type": "null"}]}),
        (("/properties/a", "null_not_asked"),),
    ),
    Remarked(
        "a condition that cannot hold",
        conditional({"properties": {"topic": {"const": "symptom"}}}, topic={**TOPIC, "title": "What about?"}),
        (("/if", "idle_condition"),),
    ),
    Remarked(
        "a condition that always holds",
        conditional({"properties": {"late": {"type": "boolean"}}}, late=ASKED_WELL),
        (("/if", "idle_condition"),),
    ),
    Remarked("a condition that may hold", conditional({"properties": {"late": {"const": True}}}, late=ASKED_WELL)),
    Remarked("a condition on what is there", conditional({"required": ["late"]}, late=ASKED_WELL)),
)


@pytest.mark.parametrize("case", REMARKED, ids=lambda case: case.id)
def test_what_is_remarked_on(planner: Planner, case: Remarked) -> None:
    """What is allowed and probably not meant, where the rubric says it, once."""
    assert remarks(planner, case.schema) == [(f"/rubric{place}", code) for place, code in case.remarks]


def more_options_than_labels(planner: Planner) -> dict[str, Any]:
    """Two questions, of which the first does not leave labels enough for the second."""
    shared = min(len(planner.alphabet), MAX_LABELS_PER_READ)
    many = {"enum": [f"option {n}" for n in range(shared // 2 + 1)]}
    return rubric(first={**many, "title": "Which?"}, second={**many, "title": "And which?"})


def test_shared_labels_are_remarked_on(planner: Planner) -> None:
    """In the canvas that shows both; apart from each other questions cannot copy."""
    asked = more_options_than_labels(planner)
    assert remarks(planner, asked) == [("/rubric/properties/second", "shared_labels")]
    assert remarks(planner, asked, layout=Layout.ISOLATED) == []


def test_labels_may_be_shared_between_canvases(planner: Planner) -> None:
    """Where no canvas shows both nothing can be copied."""
    assert remarks(planner, more_options_than_labels(planner), layout=Layout.SPLIT) == []


def test_equal_questions_have_a_canvas_each(planner: Planner) -> None:
    """Two questions that say the same are still two."""
    seen = look(planner, rubric(a=REFILL, b=REFILL), layout=Layout.ISOLATED).canvases
    assert [(canvas.questions, canvas.reads) for canvas in seen] == [(("a",), 1), (("b",), 1)]


def test_parts_are_remarked_on(gemma_planner: Planner) -> None:
    """More labels than a read carries."""
    asked = rubric(a={"title": "Intent", "enum": [f"intent {n}" for n in range(129)]})
    seen = look(gemma_planner, asked)
    assert [(one.pointer, one.code) for one in seen.remarks] == [("/rubric/properties/a", "read_in_parts")]
    assert [canvas.reads for canvas in seen.canvases] == [2]
