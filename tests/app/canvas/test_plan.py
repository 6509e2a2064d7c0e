"""Plans: a rubric laid out, meeting states."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.branch import PlannedBranch, Slot
from app.canvas.errors import PlanTooLarge, Problem, PromptTooLong, RubricRejected, UnfitTokenizer
from app.canvas.json import Json
from app.canvas.label import MAX_LABELS_PER_READ
from app.canvas.layout import build_canvas
from app.canvas.noise import MAX_SEED, draw_noise, seed_of
from app.canvas.plan import Layout, Order, Plan, Planner, SeededRead
from app.tokenizer import CheckpointTokenizer
from tests.app.canvas.plans import (
    LIMITS,
    Schema,
    layouts,
    orders,
    planner_for,
    question_schemas,
    questions,
    rubric_of,
    toy_planner,
)
from tests.app.canvas.toy_tokenizer import PAD, TURN_END, ToyTokenizer, pairs_are_tokens
from tests.app.conftest import Decode
from tests.cases import LETTERS, MOOD, PAIN, REFILL, TOPIC, rubric

SYMPTOMS = {"title": "Symptoms", "type": "array", "items": {"enum": ["pain", "fever", "cough"]}}
ASKED = rubric(topic=TOPIC, symptoms=SYMPTOMS, refill=REFILL)
WAYS = [(layout, order) for layout in Layout for order in Order]


@pytest.fixture(scope="module")
def plan(planner: Planner) -> Plan:
    """A plan of two questions with 4 and 2 options."""
    return planner.plan(rubric(topic=TOPIC, refill=REFILL), "Be strict.")


@pytest.fixture(scope="module")
def toy() -> Planner:
    """A planner that lays any rubric out at once; its canvases hold 7 lines."""
    return toy_planner()


def test_a_plan(plan: Plan, decode: Decode) -> None:
    """Questions in order, labels that do not repeat, one canvas, the prompt around a state, a validator."""
    assert [asked.id for asked in plan.questions] == ["topic", "refill"]
    assert [[label.text for label in own] for own in plan.labels] == [["A", "B", "C", "D"], ["E", "F"]]
    (branch,) = plan.branches
    assert (branch.suffix_token_ids, len(branch.slots), plan.is_in_parts) == ((), 2, False)
    assert decode(plan.frame.before).startswith("<bos><|turn>system\nBe strict.\n\nRead the conversation")
    assert plan.validator.is_valid({"topic": "billing", "refill": True})
    assert not plan.validator.is_valid({"topic": "weather", "refill": True})


def test_labels_in_the_prompt_are_the_tokens_read(plan: Plan) -> None:
    """Every label the engine is asked about stands before its option in the prompt."""
    token_ids = [token_id for branch in plan.branches for slot in branch.slots for token_id in slot.label_token_ids]
    assert len(set(token_ids)) == 6
    assert set(token_ids) <= set(plan.frame.before)


def canvas_texts(plan: Plan, decode: Decode) -> list[str]:
    """The canvases, with a label in place of noise."""
    return [decode(branch.canvas.token_ids).removesuffix("<turn|><pad>") for branch in plan.branches]


CANVASES = {
    Layout.JOINT: ["1: A\n2: A\n3: A\n4: A\n5: A\n"],
    Layout.SPLIT: ["1: A\n", "2: A\n3: A\n4: A\n", "5: A\n"],
    Layout.ISOLATED: ["1: A\n", "1: A\n2: A\n3: A\n", "1: A\n"],
}


@pytest.mark.parametrize(("layout", "order"), WAYS)
def test_layouts(planner: Planner, decode: Decode, layout: Layout, order: Order) -> None:
    """All questions in one canvas, or each in its own, under the numbers that they have in the prompt they see."""
    plan = planner.plan(ASKED, layout=layout, order=order)
    assert canvas_texts(plan, decode) == CANVASES[layout]
    numbers = [line[0] for canvas in CANVASES[layout] for line in canvas.splitlines()]
    asked = "".join(map(decode, (plan.frame.before, plan.frame.after, *plan.frame.suffixes)))
    assert [line[0] for line in asked.splitlines() if line[1:2] == "."] == numbers
    labels = {label.text for own in plan.labels for label in own}
    assert labels == set("ABCD" if layout is Layout.ISOLATED else "ABCDEFGH")
    assert len(plan.frame.suffixes) == (3 if layout is Layout.ISOLATED else 0)


def test_joint_and_rubric_first_is_what_is_planned_unless_told(planner: Planner) -> None:
    """Of all layouts and orders; each of the others is another."""
    plans = {way: planner.plan(ASKED, "Be strict.", layout=way[0], order=way[1]) for way in WAYS}
    planned = planner.plan(ASKED, "Be strict.")
    assert tokens_of(planner, planned) == tokens_of(planner, plans[Layout.JOINT, Order.RUBRIC_FIRST])
    assert len({str(tokens_of(planner, plan)) for plan in plans.values()}) == len(WAYS)


def tokens_of(planner: Planner, plan: Plan, state: str = "Hello.") -> object:
    """Everything that an engine gets to see of a plan with a state."""
    read = planner.seed_read(plan, state, None)
    return read, [(branch.suffix_token_ids, branch.canvas, branch.slots) for branch in plan.branches]


def test_limits(planner: Planner) -> None:
    """S11: the settings' limits, and as many labels as this tokenizer has."""
    assert planner.limits == replace(planner.rubric_limits, max_labels=255)
    assert (planner.limits.max_questions, planner.limits.max_options) == (64, 255)
    assert toy_planner().limits == LIMITS


def test_more_options_than_labels_are_refused(planner: Planner) -> None:
    """At the limit a plan, one more is refused."""
    toy = replace(planner, tokenizer=ToyTokenizer())
    most = toy.limits.max_labels
    assert most < toy.limits.max_options
    options = [f"o{n}" for n in range(most + 1)]
    assert len(toy.plan(rubric(a={"enum": options[:most]})).labels[0]) == most
    with pytest.raises(RubricRejected):
        toy.plan(rubric(a={"enum": options}))
    few = replace(planner, rubric_limits=replace(LIMITS, max_options=3))
    with pytest.raises(RubricRejected):
        few.plan(rubric(a={"enum": options[:4]}))


def test_a_list_may_have_more_options_than_there_are_labels(planner: Planner) -> None:
    """Its slots share two labels; 255 options are the language's bound, and one more is refused."""
    options = [f"{n}" for n in range(256)]
    plan = planner.plan(rubric(a={"type": "array", "items": {"enum": options[:255]}}))
    assert sum(len(branch.slots) for branch in plan.branches) == 255
    with pytest.raises(RubricRejected):
        planner.plan(rubric(a={"type": "array", "items": {"enum": options}}))


def test_more_questions_than_a_canvas_holds(planner: Planner, decode: Decode) -> None:
    """Further canvases, as few as will do, with the lines that follow; 64 questions, and not one more."""
    asked: dict[str, Any] = {f"q{n}": REFILL for n in range(64)}
    plan = planner.plan(rubric(**asked))
    texts = canvas_texts(plan, decode)
    assert "".join(texts) == "".join(f"{number}: A\n" for number in range(1, 65))
    assert [text.count("\n") for text in texts] == [14, 12, 12, 12, 12, 2]
    with pytest.raises(RubricRejected):
        planner.plan(rubric(**asked, another=REFILL))


@pytest.mark.parametrize("layout", Layout)
def test_a_selection_over_several_canvases(planner: Planner, decode: Decode, layout: Layout) -> None:
    """A question with more lines than a canvas holds goes on in the next, behind the same text."""
    many = {"type": "array", "items": {"enum": list(range(20))}}
    first, second = planner.plan(rubric(many=many), layout=layout).branches
    assert first.suffix_token_ids == second.suffix_token_ids
    assert [slot.line for slot in (*first.slots, *second.slots)] == list(range(20))
    assert decode(second.canvas.token_ids).startswith("15: A\n")


def test_a_question_in_parts(toy: Planner) -> None:
    """S11: more options than a read carries labels: the same canvas with the same noise, read twice."""
    plan = toy.plan(rubric(first=REFILL, many={"enum": list(range(156))}, last=MOOD))
    assert plan.is_in_parts
    assert [[len(slot.options) for slot in branch.slots] for branch in plan.branches] == [[2, 128, 3], [28]]
    one, other = toy.seed_read(plan, "Hello.", None).canvases
    assert one == other


def test_128_options_are_not_in_parts(toy: Planner) -> None:
    """S11: at the bound; nor are many questions that together have more."""
    for asked in (rubric(a={"enum": list(range(128))}), rubric(**{f"q{n}": LETTERS for n in range(8)})):
        assert not toy.plan(asked).is_in_parts
    assert toy.plan(rubric(a={"enum": list(range(129))})).is_in_parts


@pytest.mark.parametrize("canvas_length", [9, 0])
def test_a_tokenizer_without_a_fitting_canvas_is_found_by_the_limits(
    tokenizer: CheckpointTokenizer, canvas_length: int
) -> None:
    """Asking for the limits is the start-up check."""
    with pytest.raises(UnfitTokenizer):
        _ = planner_for(tokenizer, canvas_length=canvas_length).limits
    assert planner_for(tokenizer, canvas_length=10).limits  # the widest line has five digits


@pytest.mark.parametrize(("layout", "order"), WAYS)
def test_a_prompt_at_the_limit(planner: Planner, tokenizer: CheckpointTokenizer, layout: Layout, order: Order) -> None:
    """Prompt and widest branch together may have `max_model_len` tokens, and not one more."""
    plan = planner.plan(ASKED, layout=layout, order=order)
    read = planner.seed_read(plan, "Hello.", None)
    widest = max(len(branch.suffix_token_ids) + branch.canvas.width for branch in plan.branches)
    needed = len(read.prompt_token_ids) + widest
    assert plan.widest_tokens == widest
    fitting, tight = (planner_for(tokenizer, max_model_len=length) for length in (needed, needed - 1))
    assert fitting.seed_read(plan, "Hello.", None) == read
    with pytest.raises(PromptTooLong) as refusal:
        tight.seed_read(plan, "Hello.", None)
    assert refusal.value.problem == Problem(
        pointer="/state",
        code="prompt_too_long",
        message=f"prompt and canvas need at least {needed} tokens, {needed - 1} are served",
    )


@pytest.mark.parametrize(("layout", "order"), WAYS)
def test_a_rubric_that_leaves_no_room(
    planner: Planner, tokenizer: CheckpointTokenizer, layout: Layout, order: Order
) -> None:
    """It is the rubric's fault if not even an empty state fits, and it is known without one."""
    plan = planner.plan(ASKED, "Be strict.", layout=layout, order=order)
    needed = len(planner.seed_read(plan, "", None).prompt_token_ids) + plan.widest_tokens
    fitting, tight = (planner_for(tokenizer, max_model_len=length) for length in (needed, needed - 1))
    assert fitting.plan(ASKED, "Be strict.", layout=layout, order=order)
    with pytest.raises(PromptTooLong) as refusal:
        tight.plan(ASKED, "Be strict.", layout=layout, order=order)
    assert refusal.value.problem.pointer == "/rubric"


@pytest.mark.parametrize(("layout", "order"), WAYS)
def test_a_rubric_far_over_the_limit_costs_no_canvases(
    monkeypatch: pytest.MonkeyPatch, planner: Planner, layout: Layout, order: Order
) -> None:
    """S11: it is refused by its prompt, before anything else is laid out."""
    monkeypatch.setattr("app.canvas.plan.fill_canvases", lambda *_: pytest.fail("a canvas was laid out"))
    many = {"type": "array", "items": {"enum": [f"a rather long option {n}" for n in range(255)]}}
    tight = replace(planner, max_model_len=500)
    monkeypatch.setattr(Planner, "limits", LIMITS)
    with pytest.raises(PromptTooLong) as refusal:
        tight.plan(rubric(**{f"q{n}": many for n in range(4)}), layout=layout, order=order)
    assert refusal.value.problem.pointer == "/rubric"


@pytest.mark.parametrize(("layout", "order"), WAYS)
def test_the_default_seed_derives_from_the_prompt(planner: Planner, layout: Layout, order: Order) -> None:
    """R17: a repeat is a repeat, another state another seed."""
    plan = planner.plan(ASKED, layout=layout, order=order)
    first, again, other = (planner.seed_read(plan, state, None) for state in ("Hello.", "Hello.", "Bye."))
    assert first == again
    assert first.seeds == (seed_of(first.prompt_token_ids),) != other.seeds


def test_a_seed_decides_the_noise_alone(planner: Planner, plan: Plan) -> None:
    """The prompt stays; the canvas differs at its slots."""
    first, other = (planner.seed_read(plan, "Hello.", seed) for seed in (0, 1))
    assert (first.seeds, other.seeds) == ((0,), (1,))
    assert first.prompt_token_ids == other.prompt_token_ids
    assert first.canvases != other.canvases
    (branch,) = plan.branches
    assert first.canvases == (branch.canvas.with_noise(0, planner.tokenizer.vocabulary_size),)


def test_the_same_request_is_the_same_tokens(planner: Planner, tokenizer: CheckpointTokenizer) -> None:
    """R17: whichever planner lays it out, and whatever it laid out before."""
    fresh = replace(planner_for(tokenizer), rubric_limits=planner.rubric_limits)
    for count in (5, 1, 20):
        fresh.plan(rubric(**{f"q{n}": REFILL for n in range(count)}), None)
    for layout, order in WAYS:
        ours, theirs = (
            tokens_of(one, one.plan(ASKED, "Be strict.", layout=layout, order=order)) for one in (fresh, planner)
        )
        assert ours == theirs


def test_any_tokenizer_that_keeps_letters_will_do() -> None:
    """A planner knows its tokenizer through the protocol alone."""
    planner = planner_for(ToyTokenizer(), canvas_length=20)
    plan = planner.plan(rubric(refill=REFILL))
    read = planner.seed_read(plan, "", 1)
    assert planner.limits.max_labels == 52
    assert read.prompt_token_ids[:1] + read.prompt_token_ids[-4:] == (3, 2, 4, 2, 5)
    assert plan.widest_tokens == len("1: A\n") + 2


# What holds for every rubric, over a tokenizer small enough to see through.


@given(layouts(), orders(), questions(), st.integers(14, 60))
def test_every_option_is_read_once_and_comes_back(
    layout: Layout, order: Order, asked: list[Schema], canvas_length: int
) -> None:
    """Whatever the canvases, parts and branches: what is reported at a slot for a label is found at its option."""
    planner = toy_planner(canvas_length=canvas_length)
    plan = planner.plan(rubric_of(asked), layout=layout, order=order)
    read = [
        (*owner_of(plan, layout, branch, slot), token_id)
        for branch in plan.branches
        for slot in branch.slots
        for token_id in slot.label_token_ids
    ]
    options = [
        (index, line, label.token_id)
        for index, (question, labels) in enumerate(zip(plan.questions, plan.labels, strict=True))
        for line in range(question.lines)
        for label in labels
    ]
    assert sorted(read) == sorted(options)
    numbers = {key: float(number) for number, key in enumerate(options, start=1)}
    reported = [
        [
            [numbers[*owner_of(plan, layout, branch, slot), token_id] for token_id in slot.label_token_ids]
            for slot in branch.slots
        ]
        for branch in plan.branches
    ]
    collected = tuple(plan.collect(plan.branches, reported).values())
    assert [value for lines in collected for line in lines for value in line] == list(numbers.values())
    assert [[len(line) for line in lines] for lines in collected] == [
        [len(question.slot_options)] * question.lines for question in plan.questions
    ]


def owner_of(plan: Plan, layout: Layout, branch: PlannedBranch, slot: Slot) -> tuple[int, int]:
    """Question and line of a slot: by the number before it, where the questions are numbered in one go.

    An isolated question is numbered by itself. Which it is, is seen by the text that it stands behind.
    """
    number = branch.canvas.first + branch.canvas.slots.index(slot.position)
    if layout is Layout.ISOLATED:
        assert plan.frame.suffixes[slot.question] == branch.suffix_token_ids
        return slot.question, number - 1
    firsts = tuple(accumulate((question.lines for question in plan.questions), initial=1))[:-1]
    question = sum(first <= number for first in firsts) - 1
    return question, number - firsts[question]


@given(layouts(), orders(), questions(), st.integers(14, 60))
def test_canvases_are_what_can_be_read(layout: Layout, order: Order, asked: list[Schema], canvas_length: int) -> None:
    """S11: never wider than served, never without a slot, never with more labels than a read carries.

    Slots are in canvas order and hold distinct labels.
    """
    plan = toy_planner(canvas_length=canvas_length).plan(rubric_of(asked), layout=layout, order=order)
    for branch in plan.branches:
        assert branch.canvas.width == len(branch.canvas.token_ids) <= canvas_length
        assert branch.canvas.token_ids[-2:] == (TURN_END, PAD)
        positions = [slot.position for slot in branch.slots]
        assert positions == sorted(set(positions))
        assert set(positions) <= set(branch.canvas.slots)
        assert 0 < len({label for slot in branch.slots for label in slot.label_token_ids}) <= MAX_LABELS_PER_READ
        for slot in branch.slots:
            assert 0 < len(set(slot.label_token_ids)) == len(slot.label_token_ids) == len(slot.options)


@given(layouts(), orders(), questions())
def test_parts_are_for_questions_that_need_them(
    toy: Planner, layout: Layout, order: Order, asked: list[Schema]
) -> None:
    """Reads are unconstrained only where they have to be: where a question has more options than a read has labels."""
    plan = toy.plan(rubric_of(asked), layout=layout, order=order)
    most = max(len(question.slot_options) for question in plan.questions)
    assert plan.is_in_parts is (most > MAX_LABELS_PER_READ)
    times = Counter((slot.question, slot.line) for branch in plan.branches for slot in branch.slots)
    for (question, _), parts in times.items():
        assert parts == -(-len(plan.questions[question].slot_options) // MAX_LABELS_PER_READ)


@given(orders(), questions(most_options=128), st.sampled_from([Layout.JOINT, Layout.SPLIT]))
def test_questions_of_a_canvas_have_labels_of_their_own(
    toy: Planner, order: Order, asked: list[Schema], layout: Layout
) -> None:
    """While 128 last: a model copies a letter that it sees at another slot. A question's slots share its labels."""
    plan = toy.plan(rubric_of(asked), layout=layout, order=order)
    for branch in plan.branches:
        by_question = {slot.question: set(slot.label_token_ids) for slot in branch.slots}
        used = Counter(chain.from_iterable(by_question.values()))
        assert len(used) == min(MAX_LABELS_PER_READ, used.total())


@given(orders(), questions())
def test_split_questions_share_a_prompt_and_nothing_else(toy: Planner, order: Order, asked: list[Schema]) -> None:
    """The prompt is the joint layout's, the canvases have the same lines, but no canvas holds two questions."""
    joint, split = (toy.plan(rubric_of(asked), layout=layout, order=order) for layout in (Layout.JOINT, Layout.SPLIT))
    assert (split.frame, split.labels) == (joint.frame, joint.labels)
    assert all(len({slot.question for slot in branch.slots}) == 1 for branch in split.branches)
    for plan in (joint, split):
        assert all(not branch.suffix_token_ids for branch in plan.branches)
    numbers = [
        {branch.canvas.first + i for branch in plan.branches for i in range(len(branch.canvas.slots))}
        for plan in (joint, split)
    ]
    assert numbers[0] == numbers[1] == set(range(1, sum(question.lines for question in joint.questions) + 1))


@given(questions(most=3), question_schemas(), questions(most=3), orders(), st.none() | st.integers(0, MAX_SEED))
def test_an_isolated_question_is_read_as_if_asked_alone(
    toy: Planner, before: list[Schema], question: Schema, after: list[Schema], order: Order, seed: int | None
) -> None:
    """Suffix, canvases, labels, noise: whatever else the rubric asks, wherever the question stands in it."""
    alone = isolated_branches(toy, [question], 0, order, seed)
    assert isolated_branches(toy, [*before, question, *after], len(before), order, seed) == alone
    assert isolated_branches(toy, [question, *after, *before], 0, order, seed) == alone


def isolated_branches(
    planner: Planner, asked: Sequence[Schema], index: int, order: Order, seed: int | None
) -> tuple[object, list[object]]:
    """The prompt, and all that is read of one question behind it. Other lists of questions have other names too."""
    named = {f"{len(asked)} {number}": schema for number, schema in enumerate(asked)}
    plan = planner.plan(rubric_of(named), "Be strict.", layout=Layout.ISOLATED, order=order)
    read = planner.seed_read(plan, "Hello.", seed)
    branches = zip(plan.branches, read.canvases, strict=True)
    return (read.prompt_token_ids, read.seeds), [
        (branch.suffix_token_ids, canvas, [replace(slot, question=0) for slot in branch.slots])
        for branch, canvas in branches
        if branch.slots[0].question == index
    ]


@given(layouts(), orders(), questions(), st.data())
def test_names_move_no_token(
    toy: Planner, layout: Layout, order: Order, asked: list[Schema], data: st.DataObject
) -> None:
    """Prompt, suffixes, canvases, labels and default seed are those of the rubric under other names."""
    names = data.draw(st.lists(st.text(max_size=4), min_size=len(asked), max_size=len(asked), unique=True))
    named = dict(zip(names, asked, strict=True))
    before, after = (
        tokens_of(toy, toy.plan(rubric_of(schemas), layout=layout, order=order)) for schemas in (asked, named)
    )
    assert after == before


@given(layouts(), orders(), questions(), st.randoms(use_true_random=False), st.sampled_from([None, 0, 3, "\t \n"]))
def test_how_a_rubric_is_written_moves_no_token(
    toy: Planner, layout: Layout, order: Order, asked: list[Schema], random: Random, indent: int | str | None
) -> None:
    """Keywords in another order, and white space between them, say the same."""
    schema = {**rubric_of(asked), "description": "About somebody.", "required": [], "$schema": "x", "title": "y"}
    written = json.loads(json.dumps(shuffled(schema, random), indent=indent))
    before, after = (tokens_of(toy, toy.plan(one, layout=layout, order=order)) for one in (schema, written))
    assert after == before


def shuffled(schema: Any, random: Random, *, are_names: bool = False) -> Any:
    """A schema with its keywords in another order; the order of properties is that of the questions."""
    if isinstance(schema, list):
        return [shuffled(one, random) for one in schema]
    if not isinstance(schema, dict):
        return schema
    keys = list(schema) if are_names else random.sample(list(schema), len(schema))
    return {key: shuffled(schema[key], random, are_names=key == "properties" and not are_names) for key in keys}


@given(layouts(), orders(), questions(), st.text(max_size=30), st.none() | st.integers(0, MAX_SEED))
def test_a_repeat_is_a_repeat(
    toy: Planner, layout: Layout, order: Order, asked: list[Schema], state: str, seed: int | None
) -> None:
    """R17: the same request, the same tokens, noise included, from any planner of these limits."""
    first, again = (laid_out(planner, asked, layout, order, state, seed) for planner in (toy, toy_planner()))
    assert again == first


def laid_out(
    planner: Planner, asked: Sequence[Schema], layout: Layout, order: Order, state: str, seed: int | None
) -> tuple[SeededRead, tuple[PlannedBranch, ...]]:
    """A request, from rubric to noise."""
    plan = planner.plan(rubric_of(asked), layout=layout, order=order)
    return planner.seed_read(plan, state, seed), plan.branches


@given(layouts(), orders(), questions(), st.integers(0, MAX_SEED))
def test_every_canvas_starts_the_noise_anew(
    toy: Planner, layout: Layout, order: Order, asked: list[Schema], seed: int
) -> None:
    """What is read beside a canvas does not move its noise, and the parts of a slot start from the same."""
    plan = toy.plan(rubric_of(asked), layout=layout, order=order)
    read = toy.seed_read(plan, "Hello.", seed)
    for branch, canvas in zip(plan.branches, read.canvases, strict=True):
        slots = branch.canvas.slots
        assert tuple(canvas[slot] for slot in slots) == draw_noise(seed, len(slots), toy.tokenizer.vocabulary_size)
        rest = build_canvas(toy.tokenizer, toy.alphabet, branch.canvas.first, len(slots)).token_ids
        assert [id_ for i, id_ in enumerate(canvas) if i not in slots] == [
            id_ for i, id_ in enumerate(rest) if i not in slots
        ]


@pytest.mark.parametrize("schema", [rubric(a=PAIN), rubric(a=PAIN, b={"properties": {"c": MOOD}, "type": "object"})])
def test_a_plan_is_made_of_the_rubric_alone(planner: Planner, schema: Json) -> None:
    """It says nothing of a state, so that one plan serves them all."""
    plan = planner.plan(schema)
    before = tokens_of(planner, plan, "One.")
    assert tokens_of(planner, plan, "Two.") != before
    assert tokens_of(planner, plan, "One.") == before


def test_a_request_may_not_repeat_itself_without_end(tokenizer: CheckpointTokenizer) -> None:
    """What is read behind the prompt is bounded as a whole: isolated questions repeat what stands around them."""
    asked = rubric(**{f"q{n}": REFILL for n in range(40)})
    planner = planner_for(tokenizer)
    branches = planner.plan(asked, layout=Layout.ISOLATED).branches
    tokens = sum(len(branch.suffix_token_ids) + branch.canvas.width for branch in branches)
    fitting, tight = (planner_for(tokenizer, max_branch_tokens=limit) for limit in (tokens, tokens - 1))
    assert len(fitting.plan(asked, layout=Layout.ISOLATED).branches) == 40
    with pytest.raises(PlanTooLarge) as refusal:
        tight.plan(asked, layout=Layout.ISOLATED)
    assert refusal.value.problem.pointer == "/rubric"
    assert len(tight.plan(asked).branches) < 40


def test_what_cannot_fit_is_not_tokenised() -> None:
    """R3: a text of more characters than a full context has is refused for its length alone."""

    def spell(text: str) -> list[int]:
        assert len(text) < 10_000, "a long text was tokenised"
        return pairs_are_tokens(text)

    planner = planner_for(ToyTokenizer(spell=spell), canvas_length=40, max_model_len=1000, max_branch_tokens=1000)
    plan = planner.plan(rubric(refill=REFILL))
    with pytest.raises(PromptTooLong):
        planner.seed_read(plan, "a" * 10_000, None)
    asked = rubric(**{f"q{n}": REFILL for n in range(64)})
    with pytest.raises(PlanTooLarge):
        planner.plan(asked, "a" * 9_000, layout=Layout.ISOLATED, order=Order.STATE_FIRST)


@given(layouts(), orders(), questions(most=3, most_options=6), st.integers(0, 9))
def test_rotated_options(layout: Layout, order: Order, asked: list[dict[str, Any]], rotation: int) -> None:
    """The same labels in the same places of the prompt; the first stands for another option of every slot."""
    planner = toy_planner()
    plan, rotated = (
        planner.plan(rubric_of(asked), layout=layout, order=order, rotation=number) for number in (0, rotation)
    )
    for question, usual, turned in zip(plan.questions, plan.labels, rotated.labels, strict=True):
        count = len(question.slot_options)
        assert [turned.index(label) for label in usual] == [(i + rotation) % count for i in range(count)]
        before, after = (q.prompt(1, own, r) for q, own, r in ((question, usual, 0), (question, turned, rotation)))
        shown, now = ([line.split(" = ") for line in text.splitlines() if " = " in line] for text in (before, after))
        assert [line[0] for line in now[:count]] == [line[0] for line in shown[:count]]
        texts = [option.text for option in question.slot_options]
        assert [line[1] for line in now[:count]] == [texts[(i + rotation) % count] for i in range(count)]
    for branch in rotated.branches:
        for slot in branch.slots:
            own = rotated.labels[slot.question]
            assert slot.label_token_ids == tuple(own[option].token_id for option in slot.options)
