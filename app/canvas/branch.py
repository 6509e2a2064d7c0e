"""Which slots are read in which branch of a bundle, and the way back from its logprobs to the questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from app.canvas.label import MAX_LABELS_PER_READ, Label
from app.canvas.layout import CanvasTemplate


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """A slot as one branch reads it.

    Attributes:
        position: in the canvas, in tokens.
        question, line: whose it is; a line of the question, from 0.
        options: which of the line's options this branch reads, by index.
        label_token_ids: the labels of these options.
    """

    position: int
    question: int
    line: int
    options: tuple[int, ...]
    label_token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBranch:
    """One canvas to read, before noise is drawn."""

    suffix_token_ids: tuple[int, ...]
    canvas: CanvasTemplate
    slots: tuple[Slot, ...]

    @property
    def tokens(self) -> int:
        """What it adds to the shared prompt."""
        return len(self.suffix_token_ids) + self.canvas.width


def plan_branches(
    canvases: Sequence[CanvasTemplate],
    lines: Sequence[tuple[int, int]],
    labels: Sequence[Sequence[Label]],
    suffix_token_ids: tuple[int, ...] = (),
) -> Iterator[PlannedBranch]:
    """Branches for canvases that hold these lines, each a question and a line of it, in order.

    A canvas with more labels than one read carries is read in parts: the same canvas, other labels.
    """
    rest = iter(lines)
    for canvas in canvases:
        held = tuple(islice(rest, len(canvas.slots)))
        for part in _parts([labels[question] for question, _ in held]):
            slots = zip(canvas.slots, held, strict=True)
            read = (_slot(position, *line, labels[line[0]], part) for position, line in slots)
            own = tuple(slot for slot in read if slot.options)
            yield PlannedBranch(suffix_token_ids=suffix_token_ids, canvas=canvas, slots=own)


def collect(
    branches: Sequence[PlannedBranch],
    branch_logprobs: Sequence[Sequence[Sequence[float]]],
    sizes: Mapping[int, tuple[int, int]],
) -> dict[int, tuple[tuple[float, ...], ...]]:
    """The logprobs of each question's lines over their options; `sizes` are the lines and options of each question."""
    found = {index: [[0.0] * options for _ in range(lines)] for index, (lines, options) in sizes.items()}
    for branch, logprobs in zip(branches, branch_logprobs, strict=True):
        for slot, values in zip(branch.slots, logprobs, strict=True):
            for option, value in zip(slot.options, values, strict=True):
                found[slot.question][slot.line][option] = value
    return {index: tuple(map(tuple, lines)) for index, lines in found.items()}


def _parts(labels: Sequence[Sequence[Label]]) -> list[frozenset[int]]:
    """The label token ids of some slots, in portions that one read carries."""
    every = list(dict.fromkeys(label.token_id for own in labels for label in own))
    starts = range(0, len(every), MAX_LABELS_PER_READ)
    return [frozenset(every[start : start + MAX_LABELS_PER_READ]) for start in starts]


def _slot(position: int, question: int, line: int, labels: Sequence[Label], part: frozenset[int]) -> Slot:
    options = tuple(i for i, label in enumerate(labels) if label.token_id in part)
    ids = tuple(labels[i].token_id for i in options)
    return Slot(position=position, question=question, line=line, options=options, label_token_ids=ids)
