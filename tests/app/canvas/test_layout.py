"""The canvas: template, slots, noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.errors import UnfitTokenizer
from app.canvas.label import Label, find_labels
from app.canvas.layout import CanvasTemplate, build_canvas, fill_canvases
from app.canvas.noise import MAX_SEED
from app.canvas.plan import Planner
from app.tokenizer import CheckpointTokenizer
from tests.app.canvas.toy_tokenizer import ToyTokenizer, one_token_each
from tests.app.conftest import Decode

# What the demo tokenizer fits on 64 tokens: four tokens a line, five from the tenth, and two behind.
MOST_LINES = 14


@pytest.fixture(scope="module", params=[1, 7, 96, 997])
def first(request: pytest.FixtureRequest) -> int:
    """The number of a first line, such that numbers of one more digit follow it."""
    number: int = request.param
    return number


@pytest.fixture(scope="module", params=[1, 2, 9, MOST_LINES])
def lines(request: pytest.FixtureRequest) -> int:
    """A number of lines."""
    count: int = request.param
    return count


@pytest.fixture
def canvas(first: int, lines: int, planner: Planner) -> CanvasTemplate:
    """The demo tokenizer's canvas of that many lines."""
    return build_canvas(planner.tokenizer, planner.alphabet, first, lines)


def test_a_canvas_is_a_line_a_slot(canvas: CanvasTemplate, first: int, lines: int, decode: Decode) -> None:
    """Numbered lines, the end of the turn, one pad."""
    text = "".join(f"{number}: A\n" for number in range(first, first + lines))
    assert decode(canvas.token_ids) == text + "<turn|><pad>"
    assert canvas.first == first


def test_slots_stand_behind_their_numbers(canvas: CanvasTemplate, first: int, lines: int, decode: Decode) -> None:
    """One slot a line, in order, one token wide: what lies between the slots is the template."""
    ends = (*canvas.slots, canvas.width)
    starts = (0, *(slot + 1 for slot in canvas.slots))
    between = [decode(canvas.token_ids[start:end]) for start, end in zip(starts, ends, strict=True)]
    further = (f"\n{number}:" for number in range(first + 1, first + lines))
    assert between == [f"{first}:", *further, "\n<turn|><pad>"]


def test_a_canvas_is_as_wide_as_its_tokens(
    canvas: CanvasTemplate, first: int, lines: int, tokenizer: CheckpointTokenizer
) -> None:
    """Nothing behind the end of the turn but one pad: narrow canvases are faster."""
    text = "".join(f"{number}: A\n" for number in range(first, first + lines))
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
    """Noise replaces what the template holds at a slot, whatever the seed; whatever the first line's number."""
    template, other = (CanvasTemplate(token_ids=(-1, -2, -3, -4), slots=(1, 3), first=first) for first in (1, 9))
    before, slot, between, other_slot = template.with_noise(seed, 1000)
    assert (before, between) == (-1, -3)
    assert min(slot, other_slot) >= 0
    assert other.with_noise(seed, 1000) == (before, slot, between, other_slot)


@given(first=st.integers(1, 1200), lines=st.integers(0, 200), canvas_length=st.integers(9, 130))
def test_lines_fill_canvases(planner: Planner, first: int, lines: int, canvas_length: int) -> None:
    """All of them, in order, on as few canvases as hold them: no canvas is too wide, none has room for one more."""
    canvases = tuple(fill_canvases(planner.tokenizer, planner.alphabet, first, lines, canvas_length))
    numbers = [number for one in canvases for number in range(one.first, one.first + len(one.slots))]
    assert numbers == list(range(first, first + lines))
    for one in canvases:
        assert one == build_canvas(planner.tokenizer, planner.alphabet, one.first, len(one.slots))
        assert one.width <= canvas_length
    for one in canvases[:-1]:
        assert build_canvas(planner.tokenizer, planner.alphabet, one.first, len(one.slots) + 1).width > canvas_length


def test_how_many_lines_fit(planner: Planner) -> None:
    """S11: the served canvas length is the bound, to the token."""
    for count in range(1, MOST_LINES + 1):
        width = build_canvas(planner.tokenizer, planner.alphabet, 1, count).width
        for length, expected in ((width, count), (width - 1, count - 1)):
            if expected:
                fullest = next(fill_canvases(planner.tokenizer, planner.alphabet, 1, 64, length))
                assert len(fullest.slots) == expected
    assert len(next(fill_canvases(planner.tokenizer, planner.alphabet, 1, 64, 64)).slots) == MOST_LINES


@pytest.mark.parametrize("number", [1, 10, 1000])
def test_a_canvas_for_no_line_is_refused(planner: Planner, number: int) -> None:
    """With the length in the message, at the token; later lines are wider."""
    narrowest = build_canvas(planner.tokenizer, planner.alphabet, number, 1).width
    assert narrowest == 2 + len(planner.tokenizer.encode(f"{number}: A\n"))
    assert len(tuple(fill_canvases(planner.tokenizer, planner.alphabet, number, 2, narrowest))) == 2
    with pytest.raises(UnfitTokenizer, match=f"{narrowest - 1} tokens holds no line"):
        tuple(fill_canvases(planner.tokenizer, planner.alphabet, number, 2, narrowest - 1))


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
    """Lines but the second are laid out, the second is refused: a slot is exactly one token, and that of the label."""
    tokenizer = ToyTokenizer(spell=case.spell)
    labels: tuple[Label, ...] = find_labels(tokenizer)
    assert len(build_canvas(tokenizer, labels, 1, 1).slots) == 1
    assert len(build_canvas(tokenizer, labels, 3, 5).slots) == 5
    for first, lines in ((1, 2), (2, 1)):
        with pytest.raises(UnfitTokenizer, match=f"canvas of {lines} lines"):
            build_canvas(tokenizer, labels, first, lines)
