"""From logprobs at a slot to probabilities, and what can be said about them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from app.canvas.errors import NonFiniteLogprobs

Distribution = tuple[float, ...]


def normalise(logprobs: Sequence[float]) -> Distribution:
    """Probabilities over these labels alone, summing to 1: log-sum-exp in float64.

    Not in NumPy: slots have a few labels, and an array of a few numbers costs more than the numbers.

    Raises:
        NonFiniteLogprobs: a value is NaN or infinite.
    """
    if not all(map(math.isfinite, logprobs)):
        raise NonFiniteLogprobs("a logprob is not finite")
    highest = max(logprobs)
    weights = [math.exp(logprob - highest) for logprob in logprobs]
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)


def entropy_nats(probabilities: Distribution) -> float:
    """Shannon entropy, natural logarithm."""
    return math.fsum(-p * math.log(p) for p in probabilities if p > 0.0)


def entropy(probabilities: Distribution) -> float:
    """Shannon entropy over its maximum, ln K: 0 is certain, 1 is uniform, whatever the number of options."""
    return min(1.0, entropy_nats(probabilities) / math.log(len(probabilities)))


def margin(probabilities: Distribution) -> float:
    """The lead of the likeliest option over the next."""
    first, second = sorted(probabilities, reverse=True)[:2]
    return first - second


def choice_confidence(probabilities: Distribution) -> float:
    """TypeSafe's public formula for choices: `(max - 1/n) / (1 - 1/n)`."""
    uniform = 1.0 / len(probabilities)
    return (max(probabilities) - uniform) / (1.0 - uniform)


def score_confidence(probabilities: Distribution) -> float:
    """TypeSafe's public formula for scores: `max(0, 1 - sum p_i |i - k| / D)`.

    k is the mode, `D = (1/n) sum |i - (n - 1) / 2|` the spread of a uniform distribution around the middle.
    """
    n = len(probabilities)
    mode = probabilities.index(max(probabilities))
    spread = math.fsum(p * abs(i - mode) for i, p in enumerate(probabilities))
    uniform_spread = math.fsum(abs(i - (n - 1) / 2) for i in range(n)) / n
    return max(0.0, 1.0 - spread / uniform_spread)


def mean(distributions: Sequence[Distribution]) -> Distribution:
    """The mean of distributions over the same options."""
    return tuple(math.fsum(column) / len(distributions) for column in zip(*distributions, strict=True))


def total_variation(one: Distribution, other: Distribution) -> float:
    """How far two distributions over the same options are apart, 0 to 1: half the sum of differences."""
    return math.fsum(abs(a - b) for a, b in zip(one, other, strict=True)) / 2


def standard_error(groups: Sequence[Sequence[float]]) -> float | None:
    """The standard error of the mean of groups' means, each value having the same noise; of one group s / sqrt(n).

    What the groups differ by is not noise: only how values differ from their own group's mean is (stratified sampling:
    Cochran, Sampling Techniques, 3rd edition, section 5.4). None if no group has two values, which says nothing of it.
    """
    freedom = sum(len(group) - 1 for group in groups)
    if not freedom:
        return None
    middles = [math.fsum(group) / len(group) for group in groups]
    squares = math.fsum((value - middle) ** 2 for group, middle in zip(groups, middles, strict=True) for value in group)
    return math.sqrt(squares / freedom * math.fsum(1 / len(group) for group in groups)) / len(groups)
