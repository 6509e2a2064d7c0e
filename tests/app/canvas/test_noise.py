"""Seeded noise and default seeds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.noise import MAX_SEED, draw_noise, seed_of

VOCABULARY_SIZE = 262_144


@dataclass(frozen=True)
class Golden:
    seed: int
    token_ids: tuple[int, ...]


# From numpy 2.3.5. If an upgrade moves them, every recorded seed means another canvas: raise PROMPT_LAYOUT_VERSION.
GOLDEN = (
    Golden(0, (55451, 50610, 11897, 111836, 100291, 260061)),
    Golden(42, (165902, 31102, 60675, 73305, 254931, 249948)),
    Golden(MAX_SEED, (203504, 15837, 88723, 27274, 183564, 97149)),
)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: str(case.seed))
def test_a_seed_is_one_canvas_for_ever(case: Golden) -> None:
    """R17: the same token ids on every machine and after every upgrade."""
    assert draw_noise(case.seed, 6, VOCABULARY_SIZE) == case.token_ids


@given(st.integers(0, MAX_SEED), st.integers(0, 64), st.integers(1, VOCABULARY_SIZE))
def test_noise_is_a_prefix_of_longer_noise(seed: int, count: int, vocabulary_size: int) -> None:
    """As many ids as asked for, inside the vocabulary; the first ones do not depend on how many."""
    noise = draw_noise(seed, count, vocabulary_size)
    assert len(noise) == count
    assert all(0 <= token_id < vocabulary_size for token_id in noise)
    assert draw_noise(seed, count + 3, vocabulary_size)[:count] == noise


def test_noise_is_uniform() -> None:
    """10,000 draws from ten ids: each within 5 standard deviations of a tenth."""
    counts = Counter(draw_noise(7, 10_000, 10))
    assert set(counts) == set(range(10))
    assert all(abs(count - 1000) < 5 * 30 for count in counts.values())


def test_seeds_differ() -> None:
    """A re-read with another seed reads another canvas."""
    assert len({draw_noise(seed, 2, VOCABULARY_SIZE) for seed in range(1000)}) == 1000


def test_a_default_seed_is_stable() -> None:
    """R17: golden, so that a repeat is a repeat after an upgrade too."""
    assert seed_of((2, 5, 93, 262_143)) == 972_420_605_977_535


@given(st.lists(st.integers(0, VOCABULARY_SIZE - 1), max_size=50))
def test_a_default_seed_is_one_a_caller_could_send(prompt: list[int]) -> None:
    """Exact in every JSON reader: at most 2^53 - 1."""
    assert 0 <= seed_of(prompt) <= 2**53 - 1 == MAX_SEED


def test_default_seeds_depend_on_every_token_and_their_order() -> None:
    """Other prompts read other canvases."""
    prompts = ((1, 2, 3), (1, 2), (3, 2, 1), (1, 2, 4), (258, 3), (1, 2, 3, 0))
    assert len({seed_of(prompt) for prompt in prompts}) == len(prompts)
