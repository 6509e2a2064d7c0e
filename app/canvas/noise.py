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


def seed_of(prompt_token_ids: Sequence[int]) -> int:
    """The default seed: derived from the prompt, so that a repeated request is the same request."""
    digest = hashlib.sha256(np.asarray(prompt_token_ids, dtype="<i8").tobytes()).digest()
    return int.from_bytes(digest[:8], "big") & MAX_SEED
