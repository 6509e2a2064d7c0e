"""The canvas: template, slots, noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.errors import UnfitTokenizer
from app.canvas.label import Label, find_labels
from app.canvas.layout import CanvasTemplate, build_canvas, count_questions_that_fit
from app.canvas.noise import MAX_SEED
from app.canvas.plan import Planner
from app.tokenizer import CheckpointTokenizer
from tests.app.canvas.toy_tokenizer import ToyTokenizer, one_token_each
from tests.app.conftest import Decode

# What the demo tokenizer fits on 64 tokens: four tokens a line, five from the tenth, and two behind.
MOST_QUESTIONS = 14


@pytest.fixture(scope="module", params=range(1, MOST_QUESTIONS + 1))
def questions(request: pytest.FixtureRequest) -> int:
    """Every number of questions the demo tokenizer can lay out."""
    count: int = request.param
    return count


@pytest.fixture
def canvas(questions: int, planner: Planner) -> CanvasTemplate:
    """The demo tokenizer's canvas for that many questions."""
    return build_canvas(planner.tokenizer, planner.alphabet, questions)


def test_a_canvas_is_a_line_a_question(canvas: CanvasTemplate, questions: int, decode: Decode) -> None:
    """Numbered lines, the end of the turn, one pad."""
    lines = [f"{number}: A\n" for number in range(1, questions + 1)]
    assert decode(canvas.token_ids) == "".join(lines) + "<turn|><pad>"


def test_slots_stand_behind_their_numbers(canvas: CanvasTemplate, questions: int, decode: Decode) -> None:
    """One slot a question, in question order, one token wide: what lies between the slots is the template."""
    ends = (*canvas.slots, canvas.width)
    starts = (0, *(slot + 1 for slot in canvas.slots))
    between = [decode(canvas.token_ids[start:end]) for start, end in zip(starts, ends, strict=True)]
    assert between == ["1:", *(f"\n{number}:" for number in range(2, questions + 1)), "\n<turn|><pad>"]


def test_a_canvas_is_as_wide_as_its_tokens(
    canvas: CanvasTemplate, questions: int, tokenizer: CheckpointTokenizer
) -> None:
    """Nothing behind the end of the turn but one pad: narrow canvases are faster."""
    text = "".join(f"{number}: A\n" for number in range(1, questions + 1))
    assert canvas.width == len(tokenizer.encode(text)) + 2
    assert canvas.token_ids[-2:] == (tokenizer.turn_end_token_id, tokenizer.pad_token_id)


def test_noise_stands_at_the_slots_only(canvas: CanvasTemplate, tokenizer: CheckpointTokenizer) -> None:
    """Template positions keep their tokens, slots get the seed's noise, the same for the same seed."""
    noisy = canvas.with_noise(42, tokenizer.vocabulary_size)
    assert len(noisy) == canvas.width
    changed = {i for i, (new, old) in enumerate(zip(noisy, canvas.token_ids, strict=True)) if new != old}
    assert changed <= set(canvas.slots)
    assert canvas.with_noise(42, tokenizer.vocabulary_size) == noisy
    assert canvas.with_noise(43, tokenizer.vocabulary_size) != noisy


@given(seed=st.integers(0, MAX_SEED))
def test_any_seed_fills_every_slot(seed: int) -> None:
    """Noise replaces what the template holds at a slot, whatever the seed."""
    template = CanvasTemplate(token_ids=(-1, -2, -3, -4), slots=(1, 3))
    first, slot, third, other_slot = template.with_noise(seed, 1000)
    assert (first, third) == (-1, -3)
    assert min(slot, other_slot) >= 0


def test_how_many_questions_fit(planner: Planner) -> None:
    """S11: the served canvas length is the bound, to the token."""
    for count in range(1, MOST_QUESTIONS + 1):
        width = build_canvas(planner.tokenizer, planner.alphabet, count).width
        assert count_questions_that_fit(planner.tokenizer, planner.alphabet, width, 64) == count
    assert planner.limits.max_questions == MOST_QUESTIONS


def test_no_more_questions_than_the_limit(planner: Planner) -> None:
    """However long the canvas is."""
    assert count_questions_that_fit(planner.tokenizer, planner.alphabet, 10_000, 3) == 3


def test_a_canvas_for_no_question_is_refused(planner: Planner) -> None:
    """Found at start-up, with the length in the message."""
    narrowest = build_canvas(planner.tokenizer, planner.alphabet, 1).width
    with pytest.raises(UnfitTokenizer, match=f"{narrowest - 1} tokens holds no question"):
        count_questions_that_fit(planner.tokenizer, planner.alphabet, narrowest - 1, 64)


@dataclass(frozen=True)
class Unfit:
    """A way to spell a second line that the first line, where the labels come from, does not show."""

    id: str
    spell: Callable[[str], list[int]]


def a_longer_label(text: str) -> list[int]:
    return one_token_each(text.replace("2: B", "2: BB"))


def no_difference(text: str) -> list[int]:
    return one_token_each(text.replace("2: B", "2: A"))


def another_token(text: str) -> list[int]:
    return one_token_each(text.replace("2: A", "2: a"))


def a_difference_elsewhere(text: str) -> list[int]:
    return one_token_each(text.replace("2: B", "§: B"))


UNFIT = (
    Unfit("a longer label", a_longer_label),
    Unfit("no difference", no_difference),
    Unfit("another token", another_token),
    Unfit("a difference elsewhere", a_difference_elsewhere),
)


@pytest.mark.parametrize("case", UNFIT, ids=lambda case: case.id)
def test_a_slot_that_is_not_its_label_is_refused(case: Unfit) -> None:
    """One line is laid out, two are refused: a slot is exactly one token, and that of the label."""
    tokenizer = ToyTokenizer(spell=case.spell)
    labels: tuple[Label, ...] = find_labels(tokenizer)
    assert len(build_canvas(tokenizer, labels, 1).slots) == 1
    with pytest.raises(UnfitTokenizer, match="canvas of 2 lines"):
        build_canvas(tokenizer, labels, 2)
