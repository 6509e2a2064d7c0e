"""What several reads of one question say together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    def distributions(self) -> tuple[Distribution, ...]:
        """Per line, the mean of what was read. Every order counts the same, however often it was read, so that what an
        option gains from standing first averages out."""
        return _means(self._order_means)

    def std_error(self, line: int, option: int) -> float | None:
        """The standard error of a pooled probability; None if no order was read twice, which says nothing of noise."""
        return self._error(lambda read: read[line][option])

    @cached_property
    def order_disagreement(self) -> float | None:
        """How far the orders' distributions are apart, of the line where they are farthest: total variation, the mean
        over pairs of orders; None with one order."""
        pairs = list(combinations(self._order_means, 2))
        if not pairs:
            return None
        lines = range(len(self.distributions))
        return max(math.fsum(total_variation(a[line], b[line]) for a, b in pairs) / len(pairs) for line in lines)

    def leads_by(self, line: int, errors: float) -> bool:
        """Whether a line's likeliest option leads the next by more than so many standard errors."""
        pooled = self.distributions[line]
        first, second = sorted(range(len(pooled)), key=lambda option: -pooled[option])[:2]
        error = self._error(lambda read: read[line][first] - read[line][second])
        return error is not None and pooled[first] - pooled[second] > errors * error

    def entropy_exceeds(self, threshold: float, line: int, errors: float) -> bool:
        """Whether a line's normalised entropy is over a threshold by more than so many standard errors.

        The entropy of the mean is the mean of the reads' cross-entropies against it, so that their spread says how far
        it may be off (the delta method).
        """
        pooled = self.distributions[line]
        surprise = [-math.log(p) if p > 0 else 0.0 for p in pooled]
        error = self._error(lambda read: math.fsum(map(mul, read[line], surprise)))
        return error is not None and entropy_nats(pooled) - errors * error > threshold * math.log(len(pooled))

    @cached_property
    def _by_order(self) -> list[list[QuestionRead]]:
        """The reads of each order."""
        groups: dict[int, list[QuestionRead]] = {}
        for order, read in zip(self.orders, self.reads, strict=True):
            groups.setdefault(order, []).append(read)
        return list(groups.values())

    @cached_property
    def _order_means(self) -> list[QuestionRead]:
        """What each order says."""
        return list(map(_means, self._by_order))

    def _error(self, value: Callable[[QuestionRead], float]) -> float | None:
        """The standard error of the pooled value of something that every read has."""
        return standard_error([list(map(value, reads)) for reads in self._by_order])


def _means(reads: Sequence[QuestionRead]) -> QuestionRead:
    """Line by line."""
    return tuple(map(mean, zip(*reads, strict=True)))
