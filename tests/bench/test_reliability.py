"""Calibration: bins, their gap, and the temperature that closes it."""

from __future__ import annotations

import math
from random import Random

import pytest

from bench.reliability import best_temperature, calibration_error, reliability


def test_bins_hold_every_answer_once() -> None:
    """By confidence; 1.0 belongs to the last."""
    bins = reliability([0.05, 0.95, 1.0, 0.92], [False, True, True, False], bins=10)
    assert [one.count for one in bins] == [1, 3]
    assert bins[1].confidence == pytest.approx((0.95 + 1.0 + 0.92) / 3)
    assert bins[1].accuracy == pytest.approx(2 / 3)


def test_honest_probabilities_have_no_error_and_bold_ones_have() -> None:
    """Answers that are right as often as they say; and ones that say 0.99 and are right 7 times of 10."""
    random = Random(1)
    confidences = [random.uniform(0.5, 1.0) for _ in range(20_000)]
    honest = [random.random() < confidence for confidence in confidences]
    assert calibration_error(reliability(confidences, honest)) < 0.01
    bold = [random.random() < 0.7 for _ in confidences]
    assert calibration_error(reliability([0.99] * len(bold), bold)) == pytest.approx(0.29, abs=0.02)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.5])
def test_the_temperature_that_was_applied_is_found(temperature: float) -> None:
    """Logits scaled up are scaled down again."""
    random = Random(2)
    logits = [random.gauss(0, 2) for _ in range(20_000)]
    is_right = [random.random() < 1 / (1 + math.exp(-logit)) for logit in logits]

    def loss(tried: float) -> float:
        scaled = (temperature * logit / tried for logit in logits)
        return sum(math.log1p(math.exp(-one if right else one)) for one, right in zip(scaled, is_right, strict=True))

    assert best_temperature(loss) == pytest.approx(temperature, rel=0.05)
