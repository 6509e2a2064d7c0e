"""Labels: found in a tokenizer, shared out among questions."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.errors import UnfitTokenizer
from app.canvas.label import (
    MAX_LABELS,
    MAX_LABELS_PER_READ,
    WORDS,
    Label,
    answer_line,
    assign_labels,
    find_labels,
    option_line,
)
from app.tokenizer import CheckpointTokenizer
from engine import protocol
from tests.app.canvas.toy_tokenizer import ToyTokenizer, one_token_each, pairs_are_tokens

# What a tokenizer without pairs has.
LETTERS = string.ascii_uppercase + string.ascii_lowercase


@pytest.fixture(scope="module")
def alphabet(tokenizer: CheckpointTokenizer) -> tuple[Label, ...]:
    """The labels of the demo tokenizer."""
    return find_labels(tokenizer)


def test_letters_come_first(alphabet: tuple[Label, ...]) -> None:
    """S11: every capital letter is a label of the demo tokenizer, in the order of the alphabet; pairs of them follow.

    Were they others, or in another order, the same request would be another prompt.
    """
    letters, pairs = alphabet[:26], alphabet[26:]
    assert [label.text for label in letters] == [*string.ascii_uppercase]
    assert len(pairs) == 229
    assert [label.text for label in pairs[:8]] == ["AA", "AB", "AC", "AE", "AF", "AG", "AJ", "AK"]


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
    """By default one for each option a question may have; capitals, pairs of capitals, small letters."""
    tokenizer = ToyTokenizer(spell=pairs_are_tokens)
    assert len(find_labels(tokenizer)) == MAX_LABELS == 255
    assert [label.text for label in find_labels(tokenizer, limit=28)][-4:] == ["Y", "Z", "AA", "AB"]
    texts = [label.text for label in find_labels(tokenizer, limit=1000)]
    assert texts[-28:] == ["ZY", "ZZ", *string.ascii_lowercase]
    assert len(texts) == 2 * 26 + 26**2 - len(WORDS)


@pytest.mark.parametrize("word", ["NO", "OK", "IF", "OR", "AM", "PM", "IT"])
def test_a_label_says_nothing(word: str) -> None:
    """A pair of letters that is a word is left out: the model would read "NO = yes" as an answer."""
    texts = {label.text for label in find_labels(ToyTokenizer(spell=pairs_are_tokens), limit=1000)}
    assert word in WORDS
    assert not WORDS & texts
    assert {word[0] + "Q", word[1], word[0]} <= texts


def test_pairs_that_are_no_tokens_are_no_labels() -> None:
    """A tokenizer that knows single characters only has 52 labels."""
    assert [label.text for label in find_labels(ToyTokenizer())] == list(LETTERS)


def test_the_most_labels_of_a_read_are_the_engines() -> None:
    """The canvas may not import the engine's constant, so it has one of its own."""
    assert MAX_LABELS_PER_READ == protocol.MAX_LABELS_PER_READ


@dataclass(frozen=True)
class Unlabelled:
    """A way to spell a letter that disqualifies it and leaves the others alone."""

    id: str
    spell: Callable[[str], list[int]]
    letter: str = "C"


def another_in_the_prompt(text: str) -> list[int]:
    return one_token_each(text.replace("C =", "§ ="))


def another_in_the_prompt_than_in_an_option(text: str) -> list[int]:
    return one_token_each(text.replace("x =", "§ ="))


def another_line_around_it(text: str) -> list[int]:
    return one_token_each(text.replace("C\n", "C\r"))


def the_token_of_a(text: str) -> list[int]:
    return one_token_each(text.replace("C", "A"))


def two_tokens(text: str) -> list[int]:
    return one_token_each(text.replace("C", "§c"))


UNLABELLED = (
    Unlabelled("another token in the prompt", another_in_the_prompt),
    Unlabelled("another token in the prompt, that of an option", another_in_the_prompt_than_in_an_option, "x"),
    Unlabelled("changes what stands around it", another_line_around_it),
    Unlabelled("the token of another letter", the_token_of_a),
    Unlabelled("two tokens", two_tokens),
)


@pytest.mark.parametrize("case", UNLABELLED, ids=lambda case: case.id)
def test_what_cannot_be_a_label_is_left_out(case: Unlabelled) -> None:
    """A letter that is not one token, the same in both places, its own, is skipped."""
    labels = [label.text for label in find_labels(ToyTokenizer(spell=case.spell))]
    assert labels == list(LETTERS.replace(case.letter, ""))


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
    return one_token_each(text.swapcase() if text.startswith("-") else text)


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


def alphabet_of(count: int) -> tuple[Label, ...]:
    """An alphabet of that many labels."""
    return tuple(Label(text=f"L{number}", token_id=1000 + number) for number in range(count))


def numbers(assigned: tuple[tuple[Label, ...], ...]) -> list[list[int]]:
    """The places in the alphabet of the labels of each question."""
    return [[label.token_id - 1000 for label in labels] for labels in assigned]


def test_labels_are_shared_out_in_order() -> None:
    """Questions get the next letters; past the end the first ones again."""
    assert numbers(assign_labels(alphabet_of(5), [2, 2, 3])) == [[0, 1], [2, 3], [4, 0, 1]]


def test_labels_are_shared_out_of_one_reads() -> None:
    """More labels than one read carries are there for questions that cannot do with fewer, which start at the first."""
    assigned = numbers(assign_labels(alphabet_of(255), [126, 3, 129, 3, 255, 128]))
    assert assigned[:2] == [list(range(126)), [126, 127, 0]]
    assert assigned[2:4] == [list(range(129)), [1, 2, 3]]
    assert assigned[4] == list(range(255))
    assert assigned[5] == [*range(4, 128), *range(4)]


@given(st.lists(st.integers(2, 60), max_size=12), st.integers(60, 255))
def test_questions_share_labels_only_when_they_must(option_counts: list[int], size: int) -> None:
    """A question's labels differ always; those of all questions while the labels of one read last."""
    assigned = assign_labels(alphabet_of(size), option_counts)
    assert [len(labels) for labels in assigned] == option_counts
    assert all(len(set(labels)) == len(labels) for labels in assigned)
    used = {label for labels in assigned for label in labels}
    assert len(used) == min(size, MAX_LABELS_PER_READ, sum(option_counts))


@given(st.lists(st.integers(2, 60), min_size=1), st.data())
def test_neighbours_share_no_label(option_counts: list[int], data: st.DataObject) -> None:
    """Whichever questions in a row a canvas holds: they have different labels while those of one read last."""
    first = data.draw(st.integers(0, len(option_counts) - 1))
    held = assign_labels(alphabet_of(255), option_counts)[first : data.draw(st.integers(first, len(option_counts)))]
    used = [label for labels in held for label in labels]
    assert len(set(used)) == min(MAX_LABELS_PER_READ, len(used))
