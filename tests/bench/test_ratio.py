"""Paired ratios and their intervals."""

from __future__ import annotations

import random

import numpy as np
import pytest

from bench.ratio import Ratio, geometric_mean, median, paired_ratio


def noisy(truth: float, pairs: int, seed: int) -> tuple[list[float], list[float]]:
    """Pairs whose ratio is `truth` with 20 % noise, and whose own level wanders far more than that."""
    draw = random.Random(seed)
    theirs = [draw.uniform(10, 100) for _ in range(pairs)]
    return [one * truth * draw.lognormvariate(0, 0.2) for one in theirs], theirs


def test_statistics_reduce_the_last_axis() -> None:
    values = np.array([[1.0, 4.0, 16.0], [2.0, 2.0, 2.0]])
    assert geometric_mean(values) == pytest.approx([4, 2])
    assert median(values) == pytest.approx([4, 2])


def test_equal_pairs_leave_no_doubt() -> None:
    assert paired_ratio([2, 20, 200], [4, 40, 400]) == Ratio(value=0.5, low=0.5, high=0.5)


def test_a_ratio_and_its_reciprocal_agree() -> None:
    ours, theirs = noisy(0.8, 100, seed=1)
    assert paired_ratio(ours, theirs).value == pytest.approx(1 / paired_ratio(theirs, ours).value)


@pytest.mark.parametrize("statistic", [geometric_mean, median])
def test_the_interval_covers_the_truth_as_often_as_it_says(statistic: object) -> None:
    chosen = geometric_mean if statistic is geometric_mean else median
    intervals = [paired_ratio(*noisy(0.8, 60, seed), chosen) for seed in range(100)]
    assert 88 <= sum(one.low <= 0.8 <= one.high for one in intervals) <= 100


def test_more_pairs_narrow_the_interval() -> None:
    few, many = (paired_ratio(*noisy(0.8, pairs, seed=2)) for pairs in (20, 500))
    assert many.high - many.low < (few.high - few.low) / 2


def test_one_stall_moves_the_median_less() -> None:
    ours, theirs = noisy(0.8, 30, seed=3)
    ours[0] *= 1000
    assert paired_ratio(ours, theirs).value > 0.95
    assert paired_ratio(ours, theirs, median).value < 0.95


def test_the_same_measurements_give_the_same_interval() -> None:
    ours, theirs = noisy(0.8, 30, seed=4)
    assert paired_ratio(ours, theirs) == paired_ratio(ours, theirs)


def test_text() -> None:
    assert str(Ratio(value=0.7512, low=0.7, high=0.8)) == "0.751 [0.700, 0.800]"
