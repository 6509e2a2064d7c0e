"""What several reads of one question say together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from operator import mul
from typing import TypeAlias

from app.canvas.distribution import Distribution, entropy_nats, mean, standard_error, total_variation

# One read of a question: a distribution over its slot's options per line.
QuestionRead: TypeAlias = tuple[Distribution, ...]


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Reads of one question.

    Attributes:
        reads: the oldest first, at least one.
        orders: per read, the option that stood first among the labels.
        label_mass: how much of the vocabulary's probability its labels had, of the line where they had least; None:
            this was not looked at.
    """

    reads: tuple[QuestionRead, ...]
    orders: tuple[int, ...]
    label_mass: float | None = None

    def __post_init__(self) -> None:
        if not self.reads or len(self.reads) != len(self.orders):
            raise ValueError("a pool needs reads, and the order of each; this is a bug")

    def with_reads(self, reads: Sequence[QuestionRead], order: int) -> Pool:
        """These reads besides."""
        return replace(self, reads=(*self.reads, *reads), orders=(*self.orders, *[order] * len(reads)))

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """Of each read: every order counts the same, however often it was read, so that what an option gains from
        standing first averages out; with one order the reads count the same."""
        reads_of = Counter(self.orders)
        return tuple(1 / (len(reads_of) * reads_of[order]) for order in self.orders)

    @cached_property
    def distributions(self) -> tuple[Distribution, ...]:
        """Per line, the mean of what was read."""
        return tuple(mean(line, self.weights) for line in zip(*self.reads, strict=True))

    def std_error(self, line: int, option: int) -> float | None:
        """The standard error of a pooled probability; None if no order was read twice, which says nothing of noise."""
        return self._error([read[line][option] for read in self.reads])

    @cached_property
    def order_disagreement(self) -> float | None:
        """How far the orders' distributions are apart, of the line where they are farthest: total variation, the mean
        over pairs of orders; None with one order."""
        orders = dict.fromkeys(self.orders)
        if len(orders) < 2:
            return None
        pairs = list(combinations(map(self._of_order, orders), 2))
        lines = range(len(self.distributions))
        return max(math.fsum(total_variation(a[line], b[line]) for a, b in pairs) / len(pairs) for line in lines)

    def leads_by(self, line: int, errors: float) -> bool:
        """Whether a line's likeliest option leads the next by more than so many standard errors."""
        pooled = self.distributions[line]
        first, second = sorted(range(len(pooled)), key=lambda option: -pooled[option])[:2]
        error = self._error([read[line][first] - read[line][second] for read in self.reads])
        return error is not None and pooled[first] - pooled[second] > errors * error

    def entropy_exceeds(self, threshold: float, line: int, errors: float) -> bool:
        """Whether a line's normalised entropy is over a threshold by more than so many standard errors.

        The entropy of the mean is the mean of the reads' cross-entropies against it, so that their spread says how far
        it may be off (the delta method).
        """
        pooled = self.distributions[line]
        surprise = [-math.log(p) if p > 0 else 0.0 for p in pooled]
        error = self._error([math.fsum(map(mul, read[line], surprise)) for read in self.reads])
        return error is not None and entropy_nats(pooled) - errors * error > threshold * math.log(len(pooled))

    def _error(self, values: Sequence[float]) -> float | None:
        """The standard error of the pooled value of something that every read has."""
        groups: dict[int, list[float]] = {}
        for order, value in zip(self.orders, values, strict=True):
            groups.setdefault(order, []).append(value)
        return standard_error(list(groups.values()))

    def _of_order(self, order: int) -> tuple[Distribution, ...]:
        own = [read for read, own_order in zip(self.reads, self.orders, strict=True) if own_order == order]
        return tuple(mean(line, [1 / len(own)] * len(own)) for line in zip(*own, strict=True))
