"""The checkpoint's own tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend

from app.canvas.errors import UnfitTokenizer
from app.canvas.tokenizer import ChatTemplate

# Stand where the turns' texts go while the template is taken apart. Letters only: a template may trim white space.
SYSTEM_MARK = "OnestepSystemTurnText"
USER_MARK = "OnestepUserTurnText"
# Gemma 4's way to say "no thinking". It must end the prompt: in the canvas, reads are far worse.
THOUGHT_OPEN, THOUGHT_CLOSE = "<|channel>", "<channel|>"
EMPTY_THOUGHT = f"{THOUGHT_OPEN}thought\n{THOUGHT_CLOSE}"


class CheckpointTokenizer:
    """Implements `app.canvas.tokenizer.Tokenizer` for a checkpoint folder.

    Two copies of the same tokenizer: one turns control tokens in text into plain text, for callers' text; the other
    keeps them, for the template. It is a mode of the tokenizer object, so one object could not safely do both.
    """

    def __init__(self, plain: Backend, template: Backend, rendered: str, pad_token: str) -> None:
        self._plain = plain
        self._plain.encode_special_tokens = True
        self._template = template
        self.vocabulary_size = template.get_vocab_size(with_added_tokens=True)
        self.pad_token_id = self._token_id(pad_token)
        self.chat_template = self._take_apart(rendered)
        self.control_token_ids = self._control_tokens()
        self.turn_end_token_id = self._turn_end()
        self.longest_token_bytes = max(len(token.encode()) for token in template.get_vocab())
        self._check_plain_text()

    @classmethod
    def from_checkpoint(cls, folder: Path) -> CheckpointTokenizer:
        """Load a checkpoint's tokenizer.

        Raises:
            UnfitTokenizer: it has none, or no template with a system turn.
        """
        from transformers import AutoTokenizer

        try:
            tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            rendered = _render(tokenizer)
        except Exception as error:
            raise UnfitTokenizer(
                f"the checkpoint's tokenizer or chat template cannot be used ({type(error).__name__}: {error})"
            ) from error
        if tokenizer.pad_token is None:
            raise UnfitTokenizer("the checkpoint's tokenizer has no pad token")
        serialised = tokenizer.backend_tokenizer.to_str()
        return cls(Backend.from_str(serialised), Backend.from_str(serialised), rendered, tokenizer.pad_token)

    def encode(self, text: str) -> Sequence[int]:
        """Token ids of plain text, without a control token among them."""
        ids: list[int] = self._plain.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of token ids, control tokens included."""
        text: str = self._template.decode(list(token_ids), skip_special_tokens=False)
        return text

    def _token_id(self, token: str) -> int:
        token_id: int | None = self._template.token_to_id(token)
        if token_id is None:
            raise UnfitTokenizer("a special token of the tokenizer is not in its vocabulary")
        return token_id

    def _take_apart(self, rendered: str) -> ChatTemplate:
        if rendered.count(SYSTEM_MARK) != 1 or rendered.count(USER_MARK) != 1:
            raise UnfitTokenizer("the chat template does not show a system turn and a user turn once each")
        head, rest = rendered.split(SYSTEM_MARK)
        middle, tail = rest.split(USER_MARK)
        knows_thoughts = self._template.token_to_id(THOUGHT_OPEN) is not None
        if knows_thoughts and not tail.endswith(EMPTY_THOUGHT):
            tail += EMPTY_THOUGHT
        return ChatTemplate(
            head=self._encode_template(head),
            middle=self._encode_template(middle),
            tail=self._encode_template(tail),
        )

    def _encode_template(self, text: str) -> tuple[int, ...]:
        return tuple(self._template.encode(text, add_special_tokens=False).ids)

    def _control_tokens(self) -> frozenset[int]:
        """What the tokenizer declares special, and every other added token that the template uses but white space.

        Gemma 3 has line breaks among its added tokens. They forge no turn, and callers' texts are full of them.
        """
        added = self._template.get_added_tokens_decoder()
        parts = self.chat_template
        in_template = {*parts.head, *parts.middle, *parts.tail}
        return frozenset(
            token_id
            for token_id, token in added.items()
            if token.special or (token_id in in_template and not token.content.isspace())
        )

    def _turn_end(self) -> int:
        first = next(iter(self.chat_template.tail), None)
        if first is None or first not in self.control_token_ids:
            raise UnfitTokenizer("the chat template does not end the user turn with a control token")
        return first

    def _check_plain_text(self) -> None:
        decoder = self._template.get_added_tokens_decoder()
        every = "".join(decoder[token_id].content for token_id in sorted(self.control_token_ids))
        if self.control_token_ids & set(self.encode(every)):
            raise UnfitTokenizer("this tokenizer makes control tokens out of plain text; a caller could forge a turn")


def _render(tokenizer: Any) -> str:
    rendered = tokenizer.apply_chat_template(
        [{"role": "system", "content": SYSTEM_MARK}, {"role": "user", "content": USER_MARK}],
        tokenize=False,
        add_generation_prompt=True,
        enable_thinking=False,
    )
    assert isinstance(rendered, str)
    return rendered
