"""How much faster: ratios of paired measurements, with an interval that says how sure that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 4000
INTERVAL_PERCENT = 95

Values = NDArray[np.float64]
# Reduces the last axis.
Statistic = Callable[[Values], Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A ratio and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def geometric_mean(values: Values) -> Values:
    """The mean in which a ratio and its reciprocal cancel out."""
    return np.asarray(np.exp(np.log(values).mean(axis=-1)))


def median(values: Values) -> Values:
    """The middle: what a few stalls of the machine cannot move."""
    return np.asarray(np.median(values, axis=-1))


def paired_ratio(
    ours: Sequence[float], theirs: Sequence[float], statistic: Statistic = geometric_mean, *, seed: int = 0
) -> Ratio:
    """A statistic of the ratios ours/theirs, pair by pair, with a percentile bootstrap over the pairs."""
    ratios = np.asarray(ours, dtype=np.float64) / np.asarray(theirs, dtype=np.float64)
    resampled = np.random.default_rng(seed).choice(ratios, size=(RESAMPLES, len(ratios)))
    tail = (100 - INTERVAL_PERCENT) / 2
    low, high = np.percentile(statistic(resampled), (tail, 100 - tail))
    return Ratio(value=float(statistic(ratios)), low=float(low), high=float(high))
