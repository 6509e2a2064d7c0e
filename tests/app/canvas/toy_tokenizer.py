"""Tokenizers small enough to see through: what a tokenizer must be like, and ways not to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.canvas.tokenizer import ChatTemplate

PAD, TURN_END = 1, 2
TEMPLATE = ChatTemplate(head=(3,), middle=(2, 4), tail=(2, 5))
FIRST_CHARACTER = 10
# Above every character's.
FIRST_PAIR = 2_000_000


def one_token_each(text: str) -> list[int]:
    """Every character is a token."""
    return [FIRST_CHARACTER + ord(character) for character in text]


def pairs_are_tokens(text: str) -> list[int]:
    """Every character is a token, but two ASCII letters between others are one: more labels than anybody needs."""
    return [
        FIRST_PAIR + ord(word[0]) * 128 + ord(word[1]) if len(word) == 2 else FIRST_CHARACTER + ord(character)
        for word in re.findall(r"[A-Za-z]+|[^A-Za-z]", text)
        for character in (word if len(word) != 2 else word[:1])
    ]


@dataclass(frozen=True, kw_only=True)
class ToyTokenizer:
    """Implements `app.canvas.tokenizer.Tokenizer` with whatever `spell` makes of a text."""

    spell: Callable[[str], Sequence[int]] = one_token_each
    vocabulary_size: int = 1000
    control_token_ids: frozenset[int] = frozenset({PAD, TURN_END})
    turn_end_token_id: int = TURN_END
    pad_token_id: int = PAD
    longest_token_bytes: int = 8
    chat_template: ChatTemplate = TEMPLATE

    def encode(self, text: str) -> Sequence[int]:
        """Token ids of a text."""
        return self.spell(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids, tokens of the template as numbers."""
        return "".join(map(_text_of, token_ids))


def _text_of(token_id: int) -> str:
    if token_id >= FIRST_PAIR:
        return "".join(map(chr, divmod(token_id - FIRST_PAIR, 128)))
    return f"<{token_id}>" if token_id < FIRST_CHARACTER else chr(token_id - FIRST_CHARACTER)
