"""Tokenizers small enough to see through: what a tokenizer must be like, and ways not to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.canvas.tokenizer import ChatTemplate

PAD, TURN_END = 1, 2
TEMPLATE = ChatTemplate(head=(3,), middle=(2, 4), tail=(2, 5))
FIRST_CHARACTER = 10


def one_token_each(text: str) -> list[int]:
    """Every character is a token."""
    return [FIRST_CHARACTER + ord(character) for character in text]


@dataclass(frozen=True, kw_only=True)
class ToyTokenizer:
    """Implements `app.canvas.tokenizer.Tokenizer` with whatever `spell` makes of a text."""

    spell: Callable[[str], Sequence[int]] = one_token_each
    vocabulary_size: int = 1000
    control_token_ids: frozenset[int] = frozenset({PAD, TURN_END})
    turn_end_token_id: int = TURN_END
    pad_token_id: int = PAD
    chat_template: ChatTemplate = TEMPLATE

    def encode(self, text: str) -> Sequence[int]:
        """Token ids of a text."""
        return self.spell(text)
