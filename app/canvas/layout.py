"""The canvas: an answer template with one open slot per line.

1: ▢          a line a question (a selection: a line an option), the number neutral, the slot one token wide
2: ▢
<turn|>       the end of the model's turn
<pad>         at least one pad: without it the last rows lose label mass
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.canvas.errors import UnfitTokenizer
from app.canvas.label import Label, answer_line
from app.canvas.noise import draw_noise
from app.canvas.tokenizer import Tokenizer


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasTemplate:
    """A canvas before noise is drawn.

    Attributes:
        token_ids: template tokens; what stands at a slot has no meaning.
        slots: the position of each line's slot, in order.
        first: the number of the first line.
    """

    token_ids: tuple[int, ...]
    slots: tuple[int, ...]
    first: int

    @property
    def width(self) -> int:
        """Exactly what the template needs, in tokens: narrow canvases are faster."""
        return len(self.token_ids)

    def with_noise(self, seed: int, vocabulary_size: int) -> tuple[int, ...]:
        """The canvas to read: template tokens with seeded noise at the slots."""
        canvas = list(self.token_ids)
        for slot, noise in zip(self.slots, draw_noise(seed, len(self.slots), vocabulary_size), strict=True):
            canvas[slot] = noise
        return tuple(canvas)


def build_canvas(tokenizer: Tokenizer, alphabet: Sequence[Label], first: int, lines: int) -> CanvasTemplate:
    """The canvas of a number of lines, numbered from `first`.

    The text is tokenised as a whole, twice with different labels: where the two differ is where the slots are.

    Raises:
        UnfitTokenizer: a slot is not exactly one token wide.
    """
    one, other = (tokenizer.encode(canvas_text(label.text, first, lines)) for label in alphabet[:2])
    slots = tuple(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    is_one_wide = len(one) == len(other) and len(slots) == lines
    if not is_one_wide or any(one[slot] != alphabet[0].token_id for slot in slots):
        raise UnfitTokenizer(f"a canvas of {lines} lines does not keep its labels as single tokens")
    tail = (tokenizer.turn_end_token_id, tokenizer.pad_token_id)
    return CanvasTemplate(token_ids=(*one, *tail), slots=slots, first=first)


def fill_canvases(
    tokenizer: Tokenizer, alphabet: Sequence[Label], first: int, lines: int, canvas_length: int
) -> Iterator[CanvasTemplate]:
    """Canvases for a number of lines, numbered from `first`; each as full as `canvas_length` tokens allow.

    Raises:
        UnfitTokenizer: not even one line fits.
    """
    while lines:
        canvas = _fullest_canvas(tokenizer, alphabet, first, lines, canvas_length)
        first, lines = first + len(canvas.slots), lines - len(canvas.slots)
        yield canvas


def canvas_text(label: str, first: int, lines: int) -> str:
    """What a canvas says where every slot holds that label."""
    return "".join(answer_line(number, label) for number in range(first, first + lines))


def _fullest_canvas(
    tokenizer: Tokenizer, alphabet: Sequence[Label], first: int, lines: int, canvas_length: int
) -> CanvasTemplate:
    # A line has at least a number, a slot and something between them.
    lines = min(lines, canvas_length // 3)
    while lines:
        canvas = build_canvas(tokenizer, alphabet, first, lines)
        if canvas.width <= canvas_length:
            return canvas
        # Lines get wider with their numbers, never narrower: at least this many are too many.
        lines -= max(1, (canvas.width - canvas_length) // _widest_line(canvas))
    raise UnfitTokenizer(f"a canvas of {canvas_length} tokens holds no line with this tokenizer")


def _widest_line(canvas: CanvasTemplate) -> int:
    ends = (*canvas.slots[1:], canvas.width)
    return max(end - slot for slot, end in zip(canvas.slots, ends, strict=True))
