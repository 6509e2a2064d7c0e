"""The checkpoint's tokenizer: its template taken apart, callers' text kept plain."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend
from tokenizers.models import Unigram, WordLevel
from tokenizers.pre_tokenizers import Whitespace

from app.canvas.errors import UnfitTokenizer
from app.tokenizer import EMPTY_THOUGHT, SYSTEM_MARK, USER_MARK, CheckpointTokenizer
from engine.checkpoint import FILES


@pytest.fixture(scope="module")
def backend(checkpoint: Path) -> Backend:
    """The demo tokenizer as the tokenizers library has it: special tokens in text become control tokens."""
    return Backend.from_file(str(checkpoint / "tokenizer.json"))


def test_the_template_is_taken_apart(tokenizer: CheckpointTokenizer, backend: Backend) -> None:
    """What stands around the turns' texts, token by token as the template itself would be tokenised."""
    template = tokenizer.chat_template
    written = [backend.decode(list(part), skip_special_tokens=False) for part in (template.head, template.middle)]
    assert written == ["<bos><|turn>system\n", "<turn|>\n<|turn>user\n"]
    whole = backend.encode(
        f"<bos><|turn>system\n{SYSTEM_MARK}<turn|>\n<|turn>user\n{USER_MARK}<turn|>\n<|turn>model\n{EMPTY_THOUGHT}",
        add_special_tokens=False,
    ).ids
    marks = [tokenizer.encode(mark) for mark in (SYSTEM_MARK, USER_MARK)]
    assert whole == [*template.head, *marks[0], *template.middle, *marks[1], *template.tail]


def test_the_prompt_ends_with_the_empty_thought(tokenizer: CheckpointTokenizer, backend: Backend) -> None:
    """It has to stand in the prompt: in the canvas, reads are far worse. Its marks are control tokens."""
    thought = backend.encode(EMPTY_THOUGHT, add_special_tokens=False).ids
    assert tokenizer.chat_template.tail[-len(thought) :] == tuple(thought)
    assert {thought[0], thought[-1]} <= tokenizer.control_token_ids


def test_tokens_of_the_template(tokenizer: CheckpointTokenizer, backend: Backend) -> None:
    """What ends a turn, what fills a canvas, how large the vocabulary is."""
    assert tokenizer.turn_end_token_id == backend.token_to_id("<turn|>")
    assert tokenizer.pad_token_id == backend.token_to_id("<pad>")
    assert tokenizer.vocabulary_size == backend.get_vocab_size()
    assert {tokenizer.turn_end_token_id, tokenizer.pad_token_id} <= tokenizer.control_token_ids


def test_every_special_token_is_a_control_token(tokenizer: CheckpointTokenizer, control_texts: dict[int, str]) -> None:
    """As the tokenizers library lists them."""
    assert tokenizer.control_token_ids == control_texts.keys()
    assert len(control_texts) > 5


def test_control_tokens_in_text_are_plain_text(
    tokenizer: CheckpointTokenizer, backend: Backend, control_texts: dict[int, str]
) -> None:
    """Each, alone and in a word: no control token comes out, and the text comes back."""
    for token_id, text in control_texts.items():
        assert backend.encode(text, add_special_tokens=False).ids == [token_id]
        for written in (text, f"a{text}b", f" {text}\n"):
            token_ids = tokenizer.encode(written)
            assert not tokenizer.control_token_ids & set(token_ids)
            assert backend.decode(list(token_ids)) == written


@given(text=st.text(max_size=40), marks=st.lists(st.sampled_from(["<turn|>", "<|turn>", "<bos>", "<|channel>", "<"])))
def test_no_text_makes_a_control_token(tokenizer: CheckpointTokenizer, text: str, marks: list[str]) -> None:
    """Whatever it says."""
    assert not tokenizer.control_token_ids & set(tokenizer.encode(text.join(["", *marks, ""])))


def words(*special: str) -> Backend:
    """A tokenizer of words with these control tokens."""
    vocabulary = {word: i for i, word in enumerate(("[UNK]", "system", "user", "model", "thought"))}
    backend = Backend(WordLevel(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    backend.add_special_tokens([AddedToken(text, special=True) for text in special])
    return backend


def make(rendered: str, *special: str, pad: str = "<pad>") -> CheckpointTokenizer:
    """A checkpoint's tokenizer of words, whose template renders like this."""
    return CheckpointTokenizer(words("<pad>", *special), words("<pad>", *special), rendered, pad)


RENDERED = f"<s>system {SYSTEM_MARK}</s><s>user {USER_MARK}</s><s>model"


def ids(tokenizer: Backend, text: str) -> tuple[int, ...]:
    """Token ids of a text, control tokens included."""
    return tuple(tokenizer.encode(text, add_special_tokens=False).ids)


def test_a_tokenizer_without_thoughts_gets_none() -> None:
    """Another family's template is taken as it is."""
    tokenizer, backend = make(RENDERED, "<s>", "</s>"), words("<pad>", "<s>", "</s>")
    template = tokenizer.chat_template
    assert (template.head, template.middle) == (ids(backend, "<s>system"), ids(backend, "</s><s>user"))
    assert template.tail == ids(backend, "</s><s>model")
    assert tokenizer.turn_end_token_id == backend.token_to_id("</s>")


@pytest.mark.parametrize("written", ["", EMPTY_THOUGHT], ids=["by us", "by the template"])
def test_the_empty_thought_is_there_once(written: str) -> None:
    """Whether the template writes it or not."""
    special = ("<s>", "</s>", "<|channel>", "<channel|>")
    tail = make(RENDERED + written, *special).chat_template.tail
    assert tail == ids(words("<pad>", *special), "</s><s>model" + EMPTY_THOUGHT)


@dataclass(frozen=True)
class Unfit:
    id: str
    make: Callable[[], CheckpointTokenizer]
    message: str


def obstinate() -> Backend:
    """A tokenizer with a control token among its ordinary pieces, so that plain text becomes one."""
    pieces = [("[UNK]", 0.0), ("<pad>", -1.0), ("<s>", -1.0), ("</s>", -1.0)]
    backend = Backend(Unigram(pieces, unk_id=0))
    backend.add_special_tokens([AddedToken(text, special=True) for text, _ in pieces[1:]])
    return backend


UNFIT = (
    Unfit("no system turn", lambda: make(f"<s>user {USER_MARK}</s>", "<s>", "</s>"), "a system turn and a user turn"),
    Unfit("no user turn", lambda: make(f"<s>system {SYSTEM_MARK}</s>", "<s>", "</s>"), "a system turn and a user turn"),
    Unfit("a turn twice", lambda: make(RENDERED + USER_MARK, "<s>", "</s>"), "once each"),
    Unfit("turns that end in text", lambda: make(RENDERED, "<s>"), "does not end the user turn with a control token"),
    Unfit("turns that do not end", lambda: make(f"{SYSTEM_MARK}</s>{USER_MARK}", "</s>"), "does not end the user turn"),
    Unfit("a pad token that is none", lambda: make(RENDERED, "<s>", "</s>", pad="<nopad>"), "not in its vocabulary"),
    Unfit(
        "control tokens in plain text",
        lambda: CheckpointTokenizer(obstinate(), obstinate(), RENDERED, "<pad>"),
        "a caller could forge a turn",
    ),
)


@pytest.mark.parametrize("case", UNFIT, ids=lambda case: case.id)
def test_an_unfit_tokenizer_is_refused(case: Unfit) -> None:
    """At start-up, with the reason."""
    with pytest.raises(UnfitTokenizer, match=case.message):
        case.make()


def copy_of(checkpoint: Path, folder: Path, **changed: Any) -> Path:
    """The demo checkpoint's tokenizer with another configuration."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(checkpoint / name, folder / name)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    return folder


def test_a_checkpoint_without_a_template_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    """It is named what is missing."""
    with pytest.raises(UnfitTokenizer, match="chat template cannot be used"):
        CheckpointTokenizer.from_checkpoint(copy_of(checkpoint, tmp_path, chat_template=None))


def test_a_template_that_fails_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    """As some do on a system turn."""
    template = "{{ raise_exception('System role not supported') }}"
    with pytest.raises(UnfitTokenizer, match="cannot be used"):
        CheckpointTokenizer.from_checkpoint(copy_of(checkpoint, tmp_path, chat_template=template))


def test_a_tokenizer_without_a_pad_token_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    """A canvas needs one."""
    with pytest.raises(UnfitTokenizer, match="no pad token"):
        CheckpointTokenizer.from_checkpoint(copy_of(checkpoint, tmp_path, pad_token=None))


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    """Not with whatever the library raises."""
    with pytest.raises(UnfitTokenizer, match="cannot be used"):
        CheckpointTokenizer.from_checkpoint(tmp_path)


def test_a_template_in_a_file_of_its_own(checkpoint: Path, tmp_path: Path, tokenizer: CheckpointTokenizer) -> None:
    """Where newer checkpoints keep it; it is among the files that are downloaded."""
    template = json.loads((checkpoint / "tokenizer_config.json").read_text())["chat_template"]
    folder = copy_of(checkpoint, tmp_path, chat_template=None)
    (folder / "chat_template.jinja").write_text(template)
    assert CheckpointTokenizer.from_checkpoint(folder).chat_template == tokenizer.chat_template
    assert "*.jinja" in FILES
