"""JSON Pointers and the text of a value."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.json import (
    MAX_POINTER_KEY_CHARS,
    Json,
    JsonScalar,
    count_values,
    escape,
    identity,
    one_line,
    pointer,
    sentences,
    to_text,
    unescape,
)
from tests.app.canvas.rubrics import json_values


@dataclass(frozen=True)
class PointerCase:
    id: str
    keys: tuple[str | int, ...]
    pointer: str


POINTERS = (
    PointerCase("the whole", (), ""),
    PointerCase("a key", ("rubric",), "/rubric"),
    PointerCase("keys and an index", ("oneOf", 0, "const"), "/oneOf/0/const"),
    PointerCase("the empty key", ("",), "/"),
    PointerCase("a slash and a tilde", ("a/b~c",), "/a~1b~0c"),
    PointerCase("a tilde before a one", ("~1",), "/~01"),
    PointerCase("a key of the longest length", ("k" * 256,), "/" + "k" * 256),
    PointerCase("a longer key is cut", ("k" * 257,), "/" + "k" * 256 + "…"),
)


@pytest.mark.parametrize("case", POINTERS, ids=lambda case: case.id)
def test_a_pointer_is_that_of_rfc_6901(case: PointerCase) -> None:
    """Keys are escaped, long ones cut."""
    assert pointer(*case.keys) == case.pointer


@given(st.text())
def test_escaping_loses_nothing(key: str) -> None:
    """A reference token holds no slash, and RFC 6901's way back gives the key."""
    token = escape(key)
    assert "/" not in token
    assert token.replace("~1", "/").replace("~0", "~") == key


@given(st.text(min_size=MAX_POINTER_KEY_CHARS))
def test_a_pointer_stays_small(key: str) -> None:
    """Whatever key was sent: at most 256 characters of it, each escaped to two, a slash and an ellipsis."""
    assert len(pointer(key)) <= 2 * MAX_POINTER_KEY_CHARS + 2


@dataclass(frozen=True)
class TextCase:
    id: str
    value: Json
    text: str


TEXTS = (
    TextCase("a string is itself", 'say "ä"\n', 'say "ä"\n'),
    TextCase("true", True, "true"),
    TextCase("null", None, "null"),
    TextCase("an integer", 3, "3"),
    TextCase("a whole float stays a float", 3.0, "3.0"),
    TextCase("keys keep their order", {"b": 1, "a": [2, "ä"]}, '{"b": 1, "a": [2, "ä"]}'),
)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.id)
def test_text_of_a_value(case: TextCase) -> None:
    """A string stands as it is, anything else as JSON on one line."""
    assert to_text(case.value) == case.text


@given(json_values())
def test_text_is_the_json_of_the_value(value: Json) -> None:
    """Nothing of a value that is not a string gets lost in its text."""
    text = to_text(value)
    assert (text if isinstance(value, str) else json.loads(text)) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_text_of_a_number_that_json_has_not(value: float) -> None:
    """What is not JSON has no text."""
    with pytest.raises(ValueError, match="JSON compliant"):
        to_text(value)


def test_one_line() -> None:
    """Runs of white space, line separators of Unicode included, become single spaces."""
    assert one_line("\t a \r\n b\u2028c\u0085d  ") == "a b c d"


@dataclass(frozen=True)
class SentencesCase:
    id: str
    parts: tuple[str, ...]
    said: str


SENTENCES = (
    SentencesCase("nothing", (), ""),
    SentencesCase("nothing twice", ("", ""), ""),
    SentencesCase("one", ("Pain",), "Pain"),
    SentencesCase("without its full stop", ("Pain.",), "Pain"),
    SentencesCase("two", ("Pain", "1 is mild"), "Pain. 1 is mild"),
    SentencesCase("two with full stops", ("Pain.", "1 is mild."), "Pain. 1 is mild"),
    SentencesCase("the first empty", ("", "1 is mild."), "1 is mild"),
    SentencesCase("the last empty", ("Pain.", ""), "Pain"),
    SentencesCase("one in the middle empty", ("a", "", "b"), "a. b"),
    SentencesCase("behind a question", ("Urgent?", "Now."), "Urgent? Now"),
    SentencesCase("behind a call", ("Look!", "Now."), "Look! Now"),
    SentencesCase("behind a colon", ("Urgent:", "now"), "Urgent: now"),
    SentencesCase("an abbreviation", ("e.g. this", "that etc."), "e.g. this. that etc"),
    SentencesCase("an ellipsis", ("And...", "so on..."), "And. so on"),
    SentencesCase("nothing but a full stop", (".", "x"), "x"),
)


@pytest.mark.parametrize("case", SENTENCES, ids=lambda case: case.id)
def test_sentences(case: SentencesCase) -> None:
    """Full stops between them where nothing else ends one, and none at the end."""
    assert sentences(*case.parts) == case.said


@given(st.lists(st.text()))
def test_sentences_say_everything(parts: list[str]) -> None:
    """In order; only full stops come and go. What is said is a sentence itself."""
    said = sentences(*parts)
    assert said.replace(".", "").replace(" ", "") == "".join(parts).replace(".", "").replace(" ", "")
    assert sentences(said) == said


EQUAL_IN_JSON: list[list[JsonScalar]] = [[1, 1.0], [0, 0.0, -0.0], [True], [False], [None], ["1"], [""], ["true"]]


def test_identity_is_that_of_json_schema() -> None:
    """1 is 1.0; true is neither 1 nor "true"."""
    for group in EQUAL_IN_JSON:
        assert len({identity(value) for value in group}) == 1
    assert len({identity(value) for group in EQUAL_IN_JSON for value in group}) == len(EQUAL_IN_JSON)


@given(st.text())
def test_a_token_says_what_it_was_made_of(key: str) -> None:
    """Whatever is in it."""
    assert unescape(escape(key)) == key


def test_values_are_counted() -> None:
    """With what they hold, and no further than is asked."""
    counts: list[tuple[Json, int]] = [("text", 1), (None, 1), ([], 1), ([1, [2, "3"]], 5), ({"a": {"b": [None]}}, 4)]
    for value, count in counts:
        assert count_values(value, 100) == count
    assert count_values([[1] * 1000] * 1000, 100) == 101
