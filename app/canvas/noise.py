"""Seeded noise: what stands in a slot before it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

# Exact in every JSON reader, JavaScript's included.
MAX_SEED = 2**53 - 1


def draw_noise(seed: int, count: int, vocabulary_size: int) -> tuple[int, ...]:
    """`count` token ids, uniform over the vocabulary as in the model's own training noise.

    Philox is counter-based and NumPy guarantees its stream across versions (NEP 19), which it does not for `Generator`
    methods: one seed is one canvas, on every machine and after every upgrade.
    """
    stream = np.random.Philox(key=seed).random_raw(count)
    return tuple(int(draw) % vocabulary_size for draw in stream)


def read_seed(seed: int, number: int) -> int:
    """The seed of one read of a decision, counted from 0: the decision's own seed, then one derived from it."""
    return seed if number == 0 else _below_max(f"{seed} {number}".encode())


def is_sampled(seed: int, share: float) -> bool:
    """Whether a decision is among that share of all: chosen by its seed, so that a repeated request is the same one."""
    return _below_max(f"{seed} sampled".encode()) < share * MAX_SEED


def seed_of(prompt_token_ids: Sequence[int]) -> int:
    """The default seed: derived from the prompt, so that a repeated request is the same request."""
    return _below_max(np.asarray(prompt_token_ids, dtype="<i8").tobytes())


def _below_max(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") & MAX_SEED
