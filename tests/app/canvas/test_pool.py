"""Reads of one question together: means, errors, orders."""

from __future__ import annotations

import math
from random import Random

import pytest

from app.canvas.distribution import entropy
from app.canvas.pool import Pool, QuestionRead

AB_ORDERS = (((0.9, 0.1),), ((0.5, 0.5),))


def pool(*probabilities: float, orders: tuple[int, ...] | None = None) -> Pool:
    """Reads of a yes-or-no question, by the probability of yes."""
    reads = tuple(((yes, 1 - yes),) for yes in probabilities)
    return Pool(reads=reads, orders=orders or (0,) * len(reads))


def test_the_pooled_distribution_is_the_mean() -> None:
    """Of every line by itself."""
    reads: tuple[QuestionRead, ...] = (((0.9, 0.1), (0.2, 0.8)), ((0.5, 0.5), (0.4, 0.6)))
    first, second = Pool(reads=reads, orders=(0, 0)).distributions
    assert first == pytest.approx((0.7, 0.3))
    assert second == pytest.approx((0.3, 0.7))


def test_reads_are_added() -> None:
    """Behind the others, with their order."""
    added = pool(0.9).with_reads([((0.5, 0.5),), ((0.1, 0.9),)], 1)
    assert (len(added.reads), added.orders) == (3, (0, 1, 1))
    assert added.reads[-1] == ((0.1, 0.9),)


def test_every_order_counts_the_same() -> None:
    """However often it was read."""
    assert pool(0.9, 0.5, 0.5, 0.5, orders=(0, 1, 1, 1)).distributions[0] == pytest.approx((0.7, 0.3))
    assert pool(0.9, 0.5, 0.5, 0.5).distributions[0] == pytest.approx((0.6, 0.4))


def test_one_read_says_nothing_of_its_error() -> None:
    """Nor of orders."""
    assert (pool(0.9).std_error(0, 0), pool(0.9).order_disagreement) == (None, None)


def test_the_standard_error_is_the_usual_one() -> None:
    """s / sqrt(n), the same for both options of two."""
    values = (0.9, 0.7, 0.5, 0.6)
    middle = sum(values) / 4
    expected = math.sqrt(sum((value - middle) ** 2 for value in values) / 3) / 2
    assert pool(*values).std_error(0, 0) == pytest.approx(expected)
    assert pool(*values).std_error(0, 1) == pytest.approx(expected)


def test_orders_disagree_by_their_total_variation() -> None:
    """The mean over pairs of orders; reads of one order are one; of several lines the one that says most counts."""
    assert pool(0.9, 0.7, 0.5, orders=(0, 0, 1)).order_disagreement == pytest.approx(0.3)
    assert pool(0.9, 0.7, 0.5, orders=(0, 1, 2)).order_disagreement == pytest.approx((0.2 + 0.4 + 0.2) / 3)
    reads: tuple[QuestionRead, ...] = (((0.5, 0.5), (0.2, 0.8)), ((0.5, 0.5), (0.4, 0.6)))
    assert Pool(reads=reads, orders=(0, 1)).order_disagreement == pytest.approx(0.2)


def test_reads_without_noise_are_sure_of_what_they_say() -> None:
    """Their lead is beyond doubt, if there is one, and their entropy exact."""
    sure, true = pool(0.75, 0.75), entropy((0.75, 0.25))
    assert sure.leads_by(0, 1000.0)
    assert sure.entropy_exceeds(true - 1e-9, 0, 1000.0)
    assert not sure.entropy_exceeds(true + 1e-9, 0, 0.0)
    assert not pool(0.5, 0.5).leads_by(0, 0.0)


def test_a_lead_is_measured_in_its_own_errors() -> None:
    """Reads of 0.6 and 0.7: the lead is 0.3 with an error of 0.1."""
    wide = pool(0.6, 0.7)
    assert wide.leads_by(0, 2.99)
    assert not wide.leads_by(0, 3.01)


def test_entropy_is_measured_in_its_own_errors() -> None:
    """By the delta method: as far as it may be off, and no farther."""
    wide = pool(0.6, 0.7)
    pooled = entropy((0.65, 0.35))
    error = abs(math.log(0.65 / 0.35)) * 0.05 / math.log(2)
    for errors in (1.0, 3.0):
        assert wide.entropy_exceeds(pooled - errors * error - 1e-9, 0, errors)
        assert not wide.entropy_exceeds(pooled - errors * error + 1e-9, 0, errors)


def test_one_read_exceeds_and_leads_nothing() -> None:
    """Nor do reads of as many orders: what they differ by may be the order."""
    for lone in (pool(0.99), pool(0.99, 0.98, orders=(0, 1))):
        assert not lone.leads_by(0, 0.0)
        assert not lone.entropy_exceeds(0.0, 0, 0.0)
        assert lone.std_error(0, 0) is None


def test_the_entropy_of_a_certain_answer_exceeds_nothing() -> None:
    """An option that no read has ever seen likely adds nothing."""
    assert not pool(1.0, 1.0).entropy_exceeds(0.0, 0, 3.0)


def noisy_reads(random: Random, count: int) -> tuple[QuestionRead, ...]:
    """Three options whose logits are disturbed."""

    def read() -> QuestionRead:
        weights = [math.exp(logit + random.gauss(0, 0.6)) for logit in (1.0, 0.3, -0.5)]
        return (tuple(weight / sum(weights) for weight in weights),)

    return tuple(read() for _ in range(count))


TRUTH = Pool(reads=noisy_reads(Random(0), 200_000), orders=(0,) * 200_000).distributions[0]


def test_pools_converge_on_the_truth() -> None:
    """As 1 / sqrt(n): four times the reads halve the error. The truth is the mean of very many reads."""
    random = Random(1)

    def error(count: int) -> float:
        pools = [Pool(reads=noisy_reads(random, count), orders=(0,) * count) for _ in range(3000)]
        return math.sqrt(sum((one.distributions[0][0] - TRUTH[0]) ** 2 for one in pools) / len(pools))

    errors = [error(count) for count in (1, 4, 16)]
    assert [errors[0] / errors[1], errors[1] / errors[2]] == pytest.approx([2, 2], rel=0.06)


def test_the_standard_error_is_true() -> None:
    """Within a tenth of how far pools of eight reads are off, in the mean square."""
    random = Random(2)
    pools = [Pool(reads=noisy_reads(random, 8), orders=(0,) * 8) for _ in range(3000)]
    off = math.sqrt(sum((one.distributions[0][0] - TRUTH[0]) ** 2 for one in pools) / len(pools))
    said = math.sqrt(sum((one.std_error(0, 0) or 0.0) ** 2 for one in pools) / len(pools))
    assert said == pytest.approx(off, rel=0.1)


def test_entropy_hardly_ever_exceeds_the_truth() -> None:
    """By three standard errors of eight reads."""
    random, true = Random(3), entropy(TRUTH)
    pools = [Pool(reads=noisy_reads(random, 8), orders=(0,) * 8) for _ in range(1000)]
    assert sum(one.entropy_exceeds(true, 0, 3.0) for one in pools) <= 30


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_what_orders_differ_by_is_not_noise(noise: float) -> None:
    """With a bias of 0.2 for what stands first the standard error is as true as without: a full cycle takes it out."""
    random, orders = Random(5), (0, 1, 2, 2, 3, 3, 3, 3)

    def read(first: int) -> QuestionRead:
        shift = random.gauss(0, noise)
        return (tuple(0.25 + 0.2 * ((i == first) - 1 / 4) + shift * (1 if i % 2 else -1) for i in range(4)),)

    pools = [Pool(reads=tuple(map(read, orders)), orders=orders) for _ in range(3000)]
    off = math.sqrt(sum((one.distributions[0][0] - 0.25) ** 2 for one in pools) / len(pools))
    said = math.sqrt(sum((one.std_error(0, 0) or 0.0) ** 2 for one in pools) / len(pools))
    assert said == pytest.approx(off, rel=0.1)


def test_a_cycle_of_orders_takes_an_order_bias_out() -> None:
    """The option that stands first gains what all lose: a full cycle takes that out, however often each order was read,
    and the disagreement is its size. Without rotation it stays."""
    random, true, bias = Random(4), (0.4, 0.3, 0.2, 0.1), 0.2

    def read(first: int) -> QuestionRead:
        noise = [random.gauss(0, 0.004) for _ in true]
        gained = [bias * ((i == first) - 1 / 4) + noise[i] - sum(noise) / 4 for i in range(4)]
        return (tuple(p + gain for p, gain in zip(true, gained, strict=True)),)

    orders = (0, 1, 2, 2, 3, 3, 3, 3)  # as rounds grow
    rotated = Pool(reads=tuple(map(read, orders)), orders=orders)
    assert rotated.distributions[0] == pytest.approx(true, abs=0.01)
    assert rotated.order_disagreement == pytest.approx(bias, abs=0.01)
    still = Pool(reads=tuple(read(0) for _ in orders), orders=(0,) * len(orders))
    assert still.distributions[0][0] - true[0] == pytest.approx(bias * 3 / 4, abs=0.01)


@pytest.mark.parametrize(("reads", "orders"), [((), ()), (AB_ORDERS, (0,))])
def test_reads_and_orders_belong_together(reads: tuple[QuestionRead, ...], orders: tuple[int, ...]) -> None:
    """Anything else is a bug of ours."""
    with pytest.raises(ValueError, match="this is a bug"):
        Pool(reads=reads, orders=orders)
