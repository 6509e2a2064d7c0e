"""Branches: which slots are read where, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.branch import PlannedBranch, Slot, collect, plan_branches
from app.canvas.label import MAX_LABELS_PER_READ, Label, assign_labels
from app.canvas.layout import CanvasTemplate

ALPHABET = tuple(Label(text=f"L{number}", token_id=1000 + number) for number in range(255))


def canvas(lines: int, first: int = 1) -> CanvasTemplate:
    """A canvas with slots at 2, 6, 10, ..."""
    return CanvasTemplate(token_ids=(7,) * 4 * lines, slots=tuple(range(2, 4 * lines, 4)), first=first)


def planned(
    canvases: Sequence[CanvasTemplate], lines: Sequence[tuple[int, int]], counts: Sequence[int]
) -> list[PlannedBranch]:
    """The branches of some lines, of questions with that many options."""
    return list(plan_branches(canvases, lines, assign_labels(ALPHABET, counts)))


def test_a_canvas_is_a_branch() -> None:
    """Each slot has its question, its line and the labels of all options; the suffix goes with the canvas."""
    labels = assign_labels(ALPHABET, [3, 2])
    (branch,) = plan_branches([canvas(3)], [(0, 0), (1, 0), (1, 1)], labels, (5, 6))
    assert (branch.suffix_token_ids, branch.canvas) == ((5, 6), canvas(3))
    assert branch.slots == (
        Slot(position=2, question=0, line=0, options=(0, 1, 2), label_token_ids=(1000, 1001, 1002)),
        Slot(position=6, question=1, line=0, options=(0, 1), label_token_ids=(1003, 1004)),
        Slot(position=10, question=1, line=1, options=(0, 1), label_token_ids=(1003, 1004)),
    )


def test_lines_go_on_from_canvas_to_canvas() -> None:
    """A question may have lines on several of them."""
    branches = planned([canvas(2), canvas(2, first=3)], [(0, 0), (1, 0), (1, 1), (1, 2)], [2, 2])
    assert [branch.canvas.first for branch in branches] == [1, 3]
    assert [[(slot.question, slot.line) for slot in branch.slots] for branch in branches] == [
        [(0, 0), (1, 0)],
        [(1, 1), (1, 2)],
    ]
    assert [slot.position for branch in branches for slot in branch.slots] == [2, 6, 2, 6]


def test_128_labels_are_one_read() -> None:
    """S11: of one question or of two."""
    for counts in ([128], [100, 28]):
        (branch,) = planned([canvas(len(counts))], [(question, 0) for question in range(len(counts))], counts)
        assert sum(len(slot.options) for slot in branch.slots) == MAX_LABELS_PER_READ == 128


def test_more_labels_are_read_in_parts() -> None:
    """The same canvas again; slots whose labels have all been read are not asked a second time."""
    first, second = planned([canvas(2)], [(0, 0), (1, 0)], [129, 3])
    assert first.canvas == second.canvas
    assert [slot.options for slot in first.slots] == [tuple(range(128)), (0, 1, 2)]
    (rest,) = second.slots
    assert (rest.question, rest.options, rest.label_token_ids) == (0, (128,), (1128,))


def test_a_question_that_wraps_around_is_not_split() -> None:
    """Whatever the order of its labels: only a question with more than one read carries is read in parts."""
    small_first, _ = planned([canvas(3)], [(0, 0), (1, 0), (2, 0)], [120, 20, 255])
    assert [len(slot.options) for slot in small_first.slots] == [120, 20, 128]
    assert small_first.slots[1].label_token_ids == (*range(1120, 1128), *range(1000, 1012))


@dataclass(frozen=True)
class Shape:
    """Questions with numbers of lines and of options, and canvases with numbers of slots that their lines fill."""

    questions: tuple[tuple[int, int], ...]
    slots: tuple[int, ...]

    @property
    def canvases(self) -> tuple[CanvasTemplate, ...]:
        """The canvases, their lines numbered in one go."""
        firsts = accumulate(self.slots, initial=1)
        return tuple(canvas(slots, first) for slots, first in zip(self.slots, firsts, strict=False))

    @property
    def lines(self) -> tuple[tuple[int, int], ...]:
        """Question and line of it, by number of the canvas's line."""
        return tuple((index, line) for index, (lines, _) in enumerate(self.questions) for line in range(lines))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Any questions, and any cut of their lines into canvases."""
    options = st.integers(2, 6) | st.integers(2, 255)
    questions = draw(st.lists(st.tuples(st.integers(1, 5), options), min_size=1, max_size=6))
    total = sum(lines for lines, _ in questions)
    cuts = sorted(draw(st.sets(st.integers(1, total))) | {0, total})
    return Shape(tuple(questions), tuple(end - start for start, end in pairwise(cuts)))


def line_of(branch: PlannedBranch, slot: Slot) -> int:
    """The line a slot stands in, from 0."""
    return branch.canvas.first - 1 + branch.canvas.slots.index(slot.position)


def number_of(line: int, token_id: int) -> float:
    """What is reported for a label in a line: another number for every one."""
    return float(10_000 * line + token_id)


@given(shapes())
def test_everything_is_read_once_and_comes_back(shape: Shape) -> None:
    """Every option of every line, in one branch alone; what is reported there is found in its place."""
    counts = [options for _, options in shape.questions]
    labels = assign_labels(ALPHABET, counts)
    branches = planned(shape.canvases, shape.lines, counts)
    read = [
        (line_of(branch, slot), token_id)
        for branch in branches
        for slot in branch.slots
        for token_id in slot.label_token_ids
    ]
    asked = [(line, label.token_id) for line, (index, _) in enumerate(shape.lines) for label in labels[index]]
    assert sorted(read) == sorted(asked)
    reported = [
        [[number_of(line_of(branch, slot), token_id) for token_id in slot.label_token_ids] for slot in branch.slots]
        for branch in branches
    ]
    collected = collect(branches, reported, dict(enumerate(shape.questions)))
    assert [values for lines in collected.values() for values in lines] == [
        tuple(number_of(line, label.token_id) for label in labels[index]) for line, (index, _) in enumerate(shape.lines)
    ]


@given(shapes())
def test_no_branch_asks_for_more_labels_than_a_read_carries(shape: Shape) -> None:
    """S11: and only questions with more options are read in parts; no branch is without a slot."""
    for branch in planned(shape.canvases, shape.lines, [options for _, options in shape.questions]):
        assert 0 < len({label for slot in branch.slots for label in slot.label_token_ids}) <= MAX_LABELS_PER_READ
        for slot in branch.slots:
            options = shape.questions[slot.question][1]
            assert 0 < len(slot.options) <= options
            assert options > MAX_LABELS_PER_READ or len(slot.options) == options


@pytest.mark.parametrize("reported", [[], [[[1.0, 2.0]], [[1.0]]], [[]], [[[1.0]]], [[[1.0, 2.0, 3.0]]]])
def test_reports_of_another_shape_are_refused(reported: list[list[list[float]]]) -> None:
    """A branch, a slot or a label that was not asked for, or that is missing, is a bug and no zero."""
    branches = planned([canvas(1)], [(0, 0)], [2])
    with pytest.raises(ValueError, match="zip"):
        collect(branches, reported, {0: (1, 2)})
