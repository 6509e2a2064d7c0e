"""What the canvas needs of a tokenizer: types only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTemplate:
    """A checkpoint's chat template, as the token ids it puts around a system turn and a user turn.

    Attributes:
        head: from the start to the system text, beginning-of-text token included.
        middle: between system text and user text.
        tail: from the user text to where the model answers, the empty thought block included where there is one.
    """

    head: tuple[int, ...]
    middle: tuple[int, ...]
    tail: tuple[int, ...]


class Tokenizer(Protocol):
    """A tokenizer and its chat template.

    Attributes:
        vocabulary_size: ids are below it.
        control_token_ids: ids with a meaning of their own; `encode` never returns one.
        turn_end_token_id: ends the model's turn.
        pad_token_id: fills a canvas.
        longest_token_bytes: no token stands for more text.
    """

    @property
    def vocabulary_size(self) -> int: ...
    @property
    def control_token_ids(self) -> frozenset[int]: ...
    @property
    def turn_end_token_id(self) -> int: ...
    @property
    def pad_token_id(self) -> int: ...
    @property
    def longest_token_bytes(self) -> int: ...
    @property
    def chat_template(self) -> ChatTemplate: ...

    def encode(self, text: str) -> Sequence[int]:
        """Token ids of plain text: whatever it says, it never becomes a control token."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids, control tokens included: for people to look at."""
        ...
