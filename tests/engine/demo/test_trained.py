"""The checkpoint in the box answers rightly, whichever way it is read, and wrongly as soon as it is asked wrongly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from app.canvas.plan import Planner
from app.tokenizer import EMPTY_THOUGHT
from bench.demo.labelled import held_out
from bench.demo.planned import PlannedRequest
from engine.demo.family import Split, load_families
from engine.packing import alone
from engine.protocol import Branch, CanvasSlot, ReadRequest, ReadResult
from tests.engine.running import RunningEngine

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = [
    pytest.mark.engine,
    pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning"),
]

QUESTIONS = 500
# Below what it has over all held-out questions, see its model card: 500 are fewer. To be 0.88 with the next checkpoint.
LEAST_ACCURACY = 0.74
MOST_ACCURACY_WHEN_BROKEN = 0.60

# Fails as soon as a checkpoint notices; then the mark goes.
ROBUST = pytest.mark.xfail(reason="the interim checkpoint answers as well when it is asked so", strict=True)

Values = list[list[object]]


@pytest.fixture(scope="module")
def asked(planner: Planner) -> list[PlannedRequest]:
    """500 questions and more, of patterns that were never trained on, in every layout and order."""
    return [PlannedRequest.of(planner, one) for one in held_out(load_families(), Split.HELD_OUT, QUESTIONS)]


@pytest.fixture(scope="module")
def fused(fused_engine: RunningEngine, asked: list[PlannedRequest]) -> Values:
    """The decisions of fused reads, isolated questions in bundles."""
    return _values(asked, fused_engine.read_one_by_one(one.read for one in asked))


def test_it_answers_rightly(asked: list[PlannedRequest], fused: Values) -> None:
    """Questions about sentences of patterns that it has never seen."""
    assert sum(len(one.labelled.expected) for one in asked) >= QUESTIONS
    assert accuracy(asked, fused) >= LEAST_ACCURACY


def test_two_step_reads_decide_the_same(
    asked: list[PlannedRequest], fused: Values, two_step_engine: RunningEngine
) -> None:
    """Every one of them, in float32."""
    results = two_step_engine.read_one_by_one(one.read for one in asked)
    assert all(result.fused_reads == 0 for result in results)
    assert _values(asked, results) == fused


def test_branches_read_alone_decide_the_same(
    asked: list[PlannedRequest], fused: Values, fused_engine: RunningEngine
) -> None:
    """Bundled or not."""
    bundles = [(one, values) for one, values in zip(asked, fused, strict=True) if len(one.read.branches) > 1]
    assert len(bundles) > 20
    for one, values in bundles:
        single = fused_engine.read_one_by_one(alone(one.read))
        assert one.values([branch for result in single for branch in result.branch_logprobs]) == values


@ROBUST
def test_a_causal_canvas_is_noticed(
    asked: list[PlannedRequest], fused_engine: RunningEngine, mutate: Callable[[str], None]
) -> None:
    """Slots that see nothing behind them."""
    mutate("causal_canvas")
    broken = _values(asked, fused_engine.read_one_by_one(one.read for one in asked))
    assert accuracy(asked, broken) < MOST_ACCURACY_WHEN_BROKEN


def _slots_off_by_one(branch: Branch, _: Planner) -> Branch:
    return replace(branch, canvas_slots=tuple(replace(one, position=one.position + 1) for one in branch.canvas_slots))


def _labels_swapped(branch: Branch, _: Planner) -> Branch:
    def rotated(slot: CanvasSlot) -> CanvasSlot:
        return replace(slot, label_token_ids=(*slot.label_token_ids[1:], slot.label_token_ids[0]))

    return replace(branch, canvas_slots=tuple(map(rotated, branch.canvas_slots)))


def _thought_in_canvas(branch: Branch, planner: Planner) -> Branch:
    thought = planner.tokenizer.chat_template.tail[-_thought_tokens(planner) :]
    slots = tuple(replace(one, position=one.position + len(thought)) for one in branch.canvas_slots)
    return replace(branch, canvas_token_ids=(*thought, *branch.canvas_token_ids), canvas_slots=slots)


@pytest.mark.parametrize("broken", [pytest.param(_slots_off_by_one, marks=ROBUST), _labels_swapped])
def test_a_canvas_that_is_read_wrongly_is_noticed(
    asked: list[PlannedRequest],
    fused_engine: RunningEngine,
    planner: Planner,
    broken: Callable[[Branch, Planner], Branch],
) -> None:
    """Slots beside their place, labels that mean another option."""
    reads = [
        replace(one.read, branches=tuple(broken(branch, planner) for branch in one.read.branches)) for one in asked
    ]
    assert accuracy(asked, _values(asked, fused_engine.read_one_by_one(reads))) < MOST_ACCURACY_WHEN_BROKEN


@ROBUST
def test_a_thought_in_the_canvas_is_noticed(
    asked: list[PlannedRequest], fused_engine: RunningEngine, planner: Planner
) -> None:
    """Where it should stand in the prompt."""
    reads = [_with_thought_in_canvas(one.read, planner) for one in asked]
    assert accuracy(asked, _values(asked, fused_engine.read_one_by_one(reads))) < MOST_ACCURACY_WHEN_BROKEN


def accuracy(asked: Sequence[PlannedRequest], values: Values) -> float:
    """The share of questions that are answered as expected."""
    expected = [value for one in asked for value in one.expected]
    found = [value for own in values for value in own]
    return sum(a == b for a, b in zip(found, expected, strict=True)) / len(expected)


def _values(asked: Sequence[PlannedRequest], results: Sequence[ReadResult]) -> Values:
    return [one.values(result.branch_logprobs) for one, result in zip(asked, results, strict=True)]


def _with_thought_in_canvas(read: ReadRequest, planner: Planner) -> ReadRequest:
    """The empty thought leaves the end of the prompt, or of each suffix, for the canvas."""
    cut = -_thought_tokens(planner)
    branches = tuple(_thought_in_canvas(branch, planner) for branch in read.branches)
    if not read.branches[0].suffix_token_ids:
        return replace(read, prompt_token_ids=read.prompt_token_ids[:cut], branches=branches)
    shorter = (replace(branch, suffix_token_ids=branch.suffix_token_ids[:cut]) for branch in branches)
    return replace(read, branches=tuple(shorter))


def _thought_tokens(planner: Planner) -> int:
    tail = planner.tokenizer.chat_template.tail
    return next(
        count for count in range(1, len(tail)) if planner.tokenizer.decode(tail[-count:]).startswith(EMPTY_THOUGHT)
    )
