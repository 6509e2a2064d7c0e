"""Whether probabilities mean what they say."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

BINS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Answers of similar probability.

    Attributes:
        confidence: their mean probability.
        accuracy: how many of them are right.
    """

    count: int
    confidence: float
    accuracy: float


def reliability(confidences: Sequence[float], is_right: Sequence[bool], bins: int = BINS) -> list[Bin]:
    """The bins of equal width that hold anything, by confidence."""
    groups: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for confidence, right in zip(confidences, is_right, strict=True):
        groups[min(int(confidence * bins), bins - 1)].append((confidence, right))
    return [_bin(group) for group in groups if group]


def calibration_error(found: Sequence[Bin]) -> float:
    """Expected calibration error (Naeini, Cooper and Hauskrecht 2015): the mean gap, weighted by count."""
    return sum(one.count * abs(one.confidence - one.accuracy) for one in found) / sum(one.count for one in found)


def best_temperature(loss: Callable[[float], float], low: float = 0.25, high: float = 4.0) -> float:
    """The temperature of least loss, by golden-section search in its logarithm; the loss must have one minimum."""
    ratio = (5**0.5 - 1) / 2
    while high / low > 1.001:
        span = (high / low) ** ratio
        if loss(high / span) < loss(low * span):
            high = low * span
        else:
            low = high / span
    return math.sqrt(low * high)


def _bin(group: Sequence[tuple[float, bool]]) -> Bin:
    return Bin(
        count=len(group),
        confidence=sum(confidence for confidence, _ in group) / len(group),
        accuracy=sum(right for _, right in group) / len(group),
    )
