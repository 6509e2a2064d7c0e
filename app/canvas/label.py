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
from app.canvas.option import Option
from app.canvas.tokenizer import Tokenizer

# One for each option that a question may have.
MAX_LABELS = 255
MIN_LABELS = 2
# A read carries at most this many labels: engine.protocol.MAX_LABELS_PER_READ, which the canvas may not import.
MAX_LABELS_PER_READ = 128
# A label must not say anything: "NO = yes" would be read as an answer.
WORDS = frozenset(
    {
        *("AD", "AH", "AI", "AM", "AN", "AS", "AT", "BE", "BY", "DO", "EX", "GO", "HA", "HE", "HI"),
        *("HO", "ID", "IF", "IN", "IS", "IT", "LO", "MA", "ME", "MY", "NA", "NO", "OF", "OH", "OK"),
        *("ON", "OR", "OW", "OX", "PA", "PM", "SO", "TO", "UP", "US", "WE", "YA", "YE", "YO"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A single-token name for an option, "A" say."""

    text: str
    token_id: int


def option_line(label: str, text: str) -> str:
    """The prompt's line for one option."""
    return f"- {label} = {text}\n"


def option_lines(labels: Sequence[Label], options: Sequence[Option], rotation: int = 0) -> str:
    """The prompt's lines for the options of a slot, from one of them on, and round."""
    lines = [option_line(label.text, option.text) for label, option in zip(labels, options, strict=True)]
    first = rotation % len(lines)
    return "".join((*lines[first:], *lines[:first]))


def rotate_labels(labels: Sequence[Label], rotation: int) -> tuple[Label, ...]:
    """The labels of a slot's options such that the first label goes to a later option, and so on round."""
    return tuple(labels[(index - rotation) % len(labels)] for index in range(len(labels)))


def answer_line(number: int, label: str) -> str:
    """The canvas's line for one question. The number is neutral: the caller's id would act as an instruction."""
    return f"{number}: {label}\n"


def find_labels(tokenizer: Tokenizer, limit: int = MAX_LABELS) -> tuple[Label, ...]:
    """The first `limit` labels this tokenizer offers, capitals first, then pairs of them.

    Raises:
        UnfitTokenizer: it has fewer than two.
    """
    canvas_place = _Place(tokenizer.encode(answer_line(1, "A")), tokenizer.encode(answer_line(1, "B")))
    labels: dict[int, Label] = {}
    for text in _candidates():
        token_id = canvas_place.token_of(tokenizer.encode(answer_line(1, text)))
        if token_id is None or token_id in labels or token_id not in tokenizer.encode(option_line(text, "1")):
            continue
        labels[token_id] = Label(text=text, token_id=token_id)
        if len(labels) == limit:
            break
    if len(labels) < MIN_LABELS:
        raise UnfitTokenizer("this tokenizer has no letters that are single tokens in a canvas line")
    return tuple(labels.values())


def assign_labels(alphabet: Sequence[Label], counts: Sequence[int]) -> tuple[tuple[Label, ...], ...]:
    """Labels for each question: different ones for different questions while those of one read last.

    A model copies a letter it sees at one slot to another, so questions share letters only when they must. More labels
    than one read carries would take more reads, so they are for questions that cannot do with fewer.
    """
    shared = alphabet[:MAX_LABELS_PER_READ]
    assigned, start = [], 0
    for count in counts:
        if count > len(shared):
            assigned.append(tuple(alphabet[:count]))
        else:
            assigned.append(tuple(shared[(start + i) % len(shared)] for i in range(count)))
            start += count
    return tuple(assigned)


def _candidates() -> Iterator[str]:
    """Capitals, pairs of capitals, small letters: what comes first is what most rubrics use."""
    yield from string.ascii_uppercase
    yield from (pair for pair in map("".join, product(string.ascii_uppercase, repeat=2)) if pair not in WORDS)
    yield from string.ascii_lowercase


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
