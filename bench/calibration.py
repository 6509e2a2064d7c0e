"""Temperatures for a service's answers, fitted where the right ones are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from app.canvas.json import to_text
from bench.reliability import Bin, best_temperature, calibration_error, reliability

# No probability of the service is 0, but for rounding.
LEAST_PROBABILITY = 1e-12
# With fewer a fit says more of the sample than of the model.
MIN_ANSWERS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One slot whose right option is known.

    Attributes:
        request: which it is of, for halves that share none.
        logits: of each option, up to a constant, at temperature 1.
    """

    request: int
    kind: str
    logits: tuple[float, ...]
    right: int

    def probabilities(self, temperature: float) -> tuple[float, ...]:
        """At a temperature."""
        weights = [math.exp((logit - max(self.logits)) / temperature) for logit in self.logits]
        return tuple(weight / sum(weights) for weight in weights)

    def loss(self, temperature: float) -> float:
        """Negative log-likelihood of the right option."""
        return -math.log(max(self.probabilities(temperature)[self.right], LEAST_PROBABILITY))

    def brier(self, temperature: float) -> float:
        """Brier's score over all options."""
        return sum((p - (i == self.right)) ** 2 for i, p in enumerate(self.probabilities(temperature)))

    def answered(self, temperature: float) -> tuple[float, bool]:
        """The probability of its likeliest option, and whether that is the right one."""
        probabilities = self.probabilities(temperature)
        likeliest = probabilities.index(max(probabilities))
        return probabilities[likeliest], likeliest == self.right


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What was found for one kind of question; figures are of answers that the temperature was not fitted on.

    Attributes:
        temperature: 1 where another one is no better.
        before, after: of `loss`, calibration error and `brier`.
        bins_before, bins_after: reliability.
    """

    kind: str
    answers: int
    temperature: float
    before: tuple[float, float, float]
    after: tuple[float, float, float]
    bins_before: list[Bin]
    bins_after: list[Bin]


def observed(number: int, kind: str, answer: Mapping[str, Any], expected: Any) -> list[Observed]:
    """The slots of one read of a question: one per option of an array, else one.

    Raises:
        ValueError: what is expected is none of the options.
    """
    probabilities, temperature = answer["probabilities"], answer["temperature"]
    if kind == "selection":
        wanted = set(map(_key, expected))
        if not wanted <= probabilities.keys():
            raise ValueError(f"line {number}: a list is expected that holds what is no option")
        slots = [((p, 1 - p), 0 if option in wanted else 1) for option, p in probabilities.items()]
    else:
        key = _key(expected)
        if key not in probabilities:
            raise ValueError(f"line {number}: what is expected is no option")
        slots = [(tuple(probabilities.values()), list(probabilities).index(key))]
    return [
        Observed(request=number, kind=kind, logits=tuple(temperature * _log(p) for p in shares), right=right)
        for shares, right in slots
    ]


def _key(value: Any) -> str:
    """What `probabilities` calls a value; 1.0 is 1."""
    return to_text(int(value) if isinstance(value, float) and value.is_integer() else value)


def fit(kind: str, seen: Sequence[Observed]) -> Fit | None:
    """The temperature of one kind; None if too little is known of it.

    Each half of the requests is judged by the temperature of the other, so that what is better is better on answers
    that it was not fitted on.
    """
    if len(seen) < MIN_ANSWERS:
        return None
    halves = [[one for one in seen if one.request % 2 == half] for half in (0, 1)]
    if not all(halves):
        return None
    of_other = {half: _temperature(halves[1 - half]) for half in (0, 1)}
    before, bins_before = _figures(seen, lambda _: 1.0)
    after, bins_after = _figures(seen, lambda one: of_other[one.request % 2])
    is_better = after[0] < before[0]
    return Fit(
        kind=kind,
        answers=len(seen),
        temperature=round(_temperature(seen), 3) if is_better else 1.0,
        before=before,
        after=after if is_better else before,
        bins_before=bins_before,
        bins_after=bins_after if is_better else bins_before,
    )


def _temperature(seen: Sequence[Observed]) -> float:
    return best_temperature(lambda tried: fmean(one.loss(tried) for one in seen), low=0.1, high=10.0)


def _figures(
    seen: Sequence[Observed], temperature_of: Callable[[Observed], float]
) -> tuple[tuple[float, float, float], list[Bin]]:
    answered = [one.answered(temperature_of(one)) for one in seen]
    bins = reliability([confidence for confidence, _ in answered], [right for _, right in answered])
    loss = fmean(one.loss(temperature_of(one)) for one in seen)
    return (loss, calibration_error(bins), fmean(one.brier(temperature_of(one)) for one in seen)), bins


def _log(probability: float) -> float:
    return math.log(max(probability, LEAST_PROBABILITY))
