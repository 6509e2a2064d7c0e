"""The canvas: an answer template with one open slot per question.

1: ▢          a line a question, the number neutral, the slot one token wide
2: ▢
<turn|>       the end of the model's turn
<pad>         at least one pad: without it the last rows lose label mass
"""

from __future__ import annotations

from collections.abc import Sequence
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
        slots: the position of each question's slot, in question order.
    """

    token_ids: tuple[int, ...]
    slots: tuple[int, ...]

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


def build_canvas(tokenizer: Tokenizer, alphabet: Sequence[Label], questions: int) -> CanvasTemplate:
    """The canvas for a number of questions.

    The text is tokenised as a whole, twice with different labels: where the two differ is where the slots are.

    Raises:
        UnfitTokenizer: a slot is not exactly one token wide.
    """
    first, second = (_spell(tokenizer, label, questions) for label in alphabet[:2])
    slots = tuple(i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    is_one_wide = len(first) == len(second) and len(slots) == questions
    if not is_one_wide or any(first[slot] != alphabet[0].token_id for slot in slots):
        raise UnfitTokenizer(f"a canvas of {questions} lines does not keep its labels as single tokens")
    tail = (tokenizer.turn_end_token_id, tokenizer.pad_token_id)
    return CanvasTemplate(token_ids=(*first, *tail), slots=slots)


def count_questions_that_fit(tokenizer: Tokenizer, alphabet: Sequence[Label], canvas_length: int, limit: int) -> int:
    """How many questions a canvas of `canvas_length` tokens can hold, at most `limit`.

    Raises:
        UnfitTokenizer: not even one.
    """
    fitting = 0
    while fitting < limit and build_canvas(tokenizer, alphabet, fitting + 1).width <= canvas_length:
        fitting += 1
    if not fitting:
        raise UnfitTokenizer(f"a canvas of {canvas_length} tokens holds no question with this tokenizer")
    return fitting


def _spell(tokenizer: Tokenizer, label: Label, questions: int) -> Sequence[int]:
    return tokenizer.encode("".join(answer_line(number, label.text) for number in range(1, questions + 1)))
