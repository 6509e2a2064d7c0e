"""Labels: found in a tokenizer, shared out among questions."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.errors import UnfitTokenizer
from app.canvas.label import Label, answer_line, assign_labels, find_labels, option_line
from app.tokenizer import CheckpointTokenizer
from engine.protocol import MAX_LABELS_PER_READ
from tests.app.canvas.toy_tokenizer import ToyTokenizer, one_token_each


@pytest.fixture(scope="module")
def alphabet(tokenizer: CheckpointTokenizer) -> tuple[Label, ...]:
    """The labels of the demo tokenizer."""
    return find_labels(tokenizer)


def test_letters_come_first(alphabet: tuple[Label, ...]) -> None:
    """Every capital letter is a label of the demo tokenizer, in the order of the alphabet."""
    assert [label.text for label in alphabet[:26]] == list(string.ascii_uppercase)


def test_labels_are_distinct_tokens(alphabet: tuple[Label, ...]) -> None:
    """No two options of a question could be told apart otherwise."""
    assert len({label.token_id for label in alphabet}) == len({label.text for label in alphabet}) == len(alphabet)


def test_a_label_is_one_token_in_the_canvas(alphabet: tuple[Label, ...], tokenizer: CheckpointTokenizer) -> None:
    """Changing the label of a line changes one token, which is the label's."""
    reference = tokenizer.encode(answer_line(1, alphabet[0].text))
    for label in alphabet[1:]:
        line = tokenizer.encode(answer_line(1, label.text))
        assert [new for new, old in zip(line, reference, strict=True) if new != old] == [label.token_id]


def test_a_label_is_the_same_token_in_the_prompt(alphabet: tuple[Label, ...], tokenizer: CheckpointTokenizer) -> None:
    """The model sees, before an option, the very token it is asked for at the slot, and no other label's."""
    token_ids = {label.token_id for label in alphabet}
    for label in alphabet:
        assert token_ids & set(tokenizer.encode(option_line(label.text, ""))) == {label.token_id}


def test_as_many_labels_as_asked_for() -> None:
    """By default no more than an engine reports for a read: vLLM's cap."""
    tokenizer = ToyTokenizer(spell=pairs_are_tokens)
    assert len(find_labels(tokenizer)) == MAX_LABELS_PER_READ
    assert [label.text for label in find_labels(tokenizer, limit=28)][-3:] == ["Z", "AA", "AB"]


def pairs_are_tokens(text: str) -> list[int]:
    """One token for each character, but one for two capitals in a row."""
    token_ids: list[int] = []
    for character, before in zip(text, " " + text, strict=False):
        if before.isupper() and character.isupper():
            token_ids[-1] = 500 + ord(before) * 100 + ord(character)
        else:
            token_ids.append(ord(character))
    return token_ids


def test_pairs_that_are_no_tokens_are_no_labels() -> None:
    """A tokenizer that knows single characters only has 26 labels."""
    assert len(find_labels(ToyTokenizer())) == 26


@dataclass(frozen=True)
class Unlabelled:
    """A way to spell the letter C that disqualifies it and leaves the others alone."""

    id: str
    spell: Callable[[str], list[int]]


def another_in_the_prompt(text: str) -> list[int]:
    return one_token_each(text.replace("C =", "§ ="))


def another_line_around_it(text: str) -> list[int]:
    return one_token_each(text.replace("C\n", "C\r"))


def the_token_of_a(text: str) -> list[int]:
    return one_token_each(text.replace("C", "A"))


def two_tokens(text: str) -> list[int]:
    return one_token_each(text.replace("C", "§c"))


UNLABELLED = (
    Unlabelled("another token in the prompt", another_in_the_prompt),
    Unlabelled("changes what stands around it", another_line_around_it),
    Unlabelled("the token of another letter", the_token_of_a),
    Unlabelled("two tokens", two_tokens),
)


@pytest.mark.parametrize("case", UNLABELLED, ids=lambda case: case.id)
def test_what_cannot_be_a_label_is_left_out(case: Unlabelled) -> None:
    """A letter that is not one token, the same in both places, its own, is skipped."""
    labels = [label.text for label in find_labels(ToyTokenizer(spell=case.spell))]
    assert labels == list(string.ascii_uppercase.replace("C", ""))


@dataclass(frozen=True)
class Unfit:
    id: str
    spell: Callable[[str], list[int]]
    message: str


def split_in_two(text: str) -> list[int]:
    """Two tokens for each character, which both depend on it."""
    return [part for character in text for part in (ord(character) % 7, 10 + ord(character) % 5)]


def as_long_as_the_letter_is_late(text: str) -> list[int]:
    return [ord(character) for character in text for _ in range(max(1, ord(character) - ord("A") + 1))]


def all_others_in_the_prompt(text: str) -> list[int]:
    return one_token_each(text.lower() if text.startswith("-") else text)


UNFIT = (
    Unfit("splits letters", split_in_two, "not a single token"),
    Unfit("letters of different lengths", as_long_as_the_letter_is_late, "not a single token"),
    Unfit("other letters in the prompt", all_others_in_the_prompt, "no letters"),
)


@pytest.mark.parametrize("case", UNFIT, ids=lambda case: case.id)
def test_a_tokenizer_without_labels_is_refused(case: Unfit) -> None:
    """Found at start-up, with the reason."""
    with pytest.raises(UnfitTokenizer, match=case.message):
        find_labels(ToyTokenizer(spell=case.spell))


def letters(count: int) -> tuple[Label, ...]:
    """An alphabet of that many letters."""
    return tuple(Label(text=text, token_id=ord(text)) for text in string.ascii_uppercase[:count])


def test_labels_are_shared_out_in_order() -> None:
    """Questions get the next letters; past the end the first ones again."""
    assigned = assign_labels(letters(5), [2, 2, 3])
    assert ["".join(label.text for label in labels) for labels in assigned] == ["AB", "CD", "EAB"]


@given(st.lists(st.integers(2, 10), max_size=12), st.integers(10, 26))
def test_questions_share_labels_only_when_they_must(option_counts: list[int], size: int) -> None:
    """A question's labels differ always; those of all questions while the alphabet lasts."""
    assigned = assign_labels(letters(size), option_counts)
    assert [len(labels) for labels in assigned] == option_counts
    assert all(len(set(labels)) == len(labels) for labels in assigned)
    used = {label for labels in assigned for label in labels}
    assert len(used) == min(size, sum(option_counts))
