"""Labels: the single tokens that stand for options, in the prompt and at the slot.

Which tokens can be labels is a fact about a tokenizer, so it is found at start-up, not assumed: a label must be one
token in its place in the canvas, the same token in its place in the prompt (a model copies what it has read), and no
other label's token.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from app.canvas.errors import UnfitTokenizer
from app.canvas.tokenizer import Tokenizer

# A read carries at most this many labels: engine.protocol.MAX_LABELS_PER_READ, which the canvas may not import.
MAX_LABELS = 128
MIN_LABELS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A single-token name for an option, "A" say."""

    text: str
    token_id: int


def option_line(label: str, text: str) -> str:
    """The prompt's line for one option."""
    return f"- {label} = {text}\n"


def answer_line(number: int, label: str) -> str:
    """The canvas's line for one question. The number is neutral: the caller's id would act as an instruction."""
    return f"{number}: {label}\n"


def find_labels(tokenizer: Tokenizer, limit: int = MAX_LABELS) -> tuple[Label, ...]:
    """The first `limit` labels this tokenizer offers, letters first, then pairs of letters.

    Raises:
        UnfitTokenizer: it has fewer than two.
    """
    canvas_place = _Place(tokenizer.encode(answer_line(1, "A")), tokenizer.encode(answer_line(1, "B")))
    labels: dict[int, Label] = {}
    for text in _candidates():
        token_id = canvas_place.token_of(tokenizer.encode(answer_line(1, text)))
        if token_id is None or token_id in labels or token_id not in tokenizer.encode(option_line(text, "x")):
            continue
        labels[token_id] = Label(text=text, token_id=token_id)
        if len(labels) == limit:
            break
    if len(labels) < MIN_LABELS:
        raise UnfitTokenizer("this tokenizer has no letters that are single tokens in a canvas line")
    return tuple(labels.values())


def assign_labels(alphabet: Sequence[Label], option_counts: Sequence[int]) -> tuple[tuple[Label, ...], ...]:
    """Labels for each question's options: different ones for different questions while the alphabet lasts.

    A model copies a letter it sees at one slot to another, so questions share letters only when they must.
    """
    assigned, start = [], 0
    for count in option_counts:
        assigned.append(tuple(alphabet[(start + i) % len(alphabet)] for i in range(count)))
        start += count
    return tuple(assigned)


def _candidates() -> Iterator[str]:
    yield from string.ascii_uppercase
    yield from map("".join, product(string.ascii_uppercase, repeat=2))


class _Place:
    """The one position at which two tokenised lines with different labels differ."""

    def __init__(self, line: Sequence[int], other: Sequence[int]) -> None:
        self._line = list(line)
        differing = [i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b]
        if len(line) != len(other) or len(differing) != 1:
            raise UnfitTokenizer("a letter is not a single token in a canvas line of this tokenizer")
        self._position = differing[0]

    def token_of(self, line: Sequence[int]) -> int | None:
        """The label token of a line, if the line differs from the known ones there and nowhere else."""
        token_id = line[self._position] if len(line) == len(self._line) else None
        if token_id is None or list(line) != [
            *self._line[: self._position],
            token_id,
            *self._line[self._position + 1 :],
        ]:
            return None
        return token_id
