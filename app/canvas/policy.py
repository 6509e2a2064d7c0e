"""The entropy policy: what to read next, or why to stop. Pure: it is told what was read, and how long that took.

A decision is read in rounds of 1, 1, 2, 4, ... reads. After each, what was read of a question so far is pooled; reading
goes on while an answer does not meet its demands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from app.canvas.decision import Answer, Outcome, decide
from app.canvas.distribution import normalise
from app.canvas.errors import Problem
from app.canvas.json import Json
from app.canvas.noise import read_seed
from app.canvas.plan import LineLogprobs
from app.canvas.pool import Pool
from app.canvas.question import Kind
from app.canvas.rubric import Rubric

# Fewer reads say too little of how far they spread.
STABLE_READS = 4
# How far a mean may be off, in standard errors.
STABLE_ERRORS = 3.0
# How much longer a round of twice the reads is expected to take: measured, at most (`python -m bench rereads`).
ROUND_GROWTH = 1.3
# No server has a larger budget of reads.
MOST_READS = 64
# Raised whenever the same reads make another answer: part of the fingerprint.
POLICY_VERSION = 1


class StopReason(StrEnum):
    """Why reading stopped.

    ENTROPY: every answer meets its demands. MAX_READS: the budget is spent. DEADLINE: another round would not be
    finished in time. STABLE: more reads would not change an answer that does not meet them.
    """

    ENTROPY = "entropy"
    MAX_READS = "max_reads"
    DEADLINE = "deadline"
    STABLE = "stable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How long to go on.

    Attributes:
        entropy_threshold: the highest entropy of an answer that is decided, 0 to 1; 0 asks for every read there is.
        max_reads: of a decision.
        rotates_options: every round shows the options in another order.
        temperatures: what logprobs of each kind of question are divided by; 1 where it has none.
    """

    entropy_threshold: float
    max_reads: int
    rotates_options: bool = False
    temperatures: Mapping[Kind, float] = field(default_factory=dict)

    def temperature(self, kind: Kind) -> float:
        """Of one kind of question."""
        return self.temperatures.get(kind, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Reads to make together.

    Attributes:
        questions: which are to be read, by index; others may be read with them.
        seeds: of each read.
        rotation: which option stands first.
    """

    questions: tuple[int, ...]
    seeds: tuple[int, ...]
    rotation: int


@dataclass(frozen=True, kw_only=True)
class Inquiry:
    """A decision while it is being read.

    Attributes:
        seed: the decision's; those of its reads follow from it.
        pools: per question, what was read.
        seeds: of all reads so far.
        rounds: made so far.
        round_seconds, round_reads: how long the last round took, and its reads.
        remaining_seconds: what was left at its end.
    """

    rubric: Rubric
    policy: Policy
    seed: int
    pools: tuple[Pool, ...] = ()
    seeds: tuple[int, ...] = ()
    rounds: int = 0
    round_seconds: float = 0.0
    round_reads: int = 0
    remaining_seconds: float = 0.0

    def observe(
        self,
        reads: Sequence[Mapping[int, LineLogprobs]],
        *,
        round_seconds: float,
        remaining_seconds: float,
        is_over_vocabulary: bool = False,
    ) -> Inquiry:
        """What is known after the round that `next` asked for.

        Args:
            reads: per seed of the round, by question, the logprobs read at its lines.
            is_over_vocabulary: the logprobs are of the whole vocabulary: then they tell the labels' mass.

        Raises:
            NonFiniteLogprobs: a logprob is NaN or infinite.
        """
        made = self.next
        assert isinstance(made, Round), "reading has stopped; this is a bug"
        assert len(reads) == len(made.seeds), "a round has a read for each of its seeds; this is a bug"
        pools = tuple(self._pool(index, reads, made.rotation) for index in range(len(self.rubric.questions)))
        if is_over_vocabulary and not self.pools:
            pools = tuple(replace(pool, label_mass=_mass(reads[0][index])) for index, pool in enumerate(pools))
        return replace(
            self,
            pools=pools,
            seeds=(*self.seeds, *made.seeds),
            rounds=self.rounds + 1,
            round_seconds=round_seconds,
            round_reads=len(made.seeds),
            remaining_seconds=remaining_seconds,
        )

    @cached_property
    def next(self) -> Round | StopReason:
        """The round to make now, or why there is none."""
        if not self.pools:
            return self._round(range(len(self.rubric.questions)), 1)
        unsettled = [index for index, answer in enumerate(self.answers) if answer.outcome is Outcome.UNCERTAIN]
        left = self.policy.max_reads - len(self.seeds)
        if not unsettled:
            return StopReason.ENTROPY
        if left <= 0:
            return StopReason.MAX_READS
        # One by one, so that where questions are read apart none is read for another's sake.
        wanted = [index for index in unsettled if not self._is_stable(self.answers[index])]
        if not wanted:
            return StopReason.STABLE
        reads = min(len(self.seeds), left)
        growth = ROUND_GROWTH if reads > self.round_reads else 1.0
        if self.round_seconds * growth > self.remaining_seconds:
            return StopReason.DEADLINE
        return self._round(wanted, reads)

    @property
    def decision(self) -> dict[str, Json]:
        """An instance of the rubric, by what was read so far."""
        return self._decided[0]

    @property
    def answers(self) -> tuple[Answer, ...]:
        """One per question, in the rubric's order, by what was read so far."""
        return self._decided[1]

    @cached_property
    def _decided(self) -> tuple[dict[str, Json], tuple[Answer, ...]]:
        return decide(self.rubric, self.pools, self.policy.entropy_threshold)

    def _round(self, questions: Sequence[int], reads: int) -> Round:
        first = len(self.seeds)
        seeds = tuple(read_seed(self.seed, number) for number in range(first, first + reads))
        rotation = self.rounds if self.policy.rotates_options else 0
        return Round(questions=tuple(questions), seeds=seeds, rotation=rotation)

    def _pool(self, index: int, reads: Sequence[Mapping[int, LineLogprobs]], rotation: int) -> Pool:
        """A question's pool with its reads of a round, if it was read."""
        question = self.rubric.questions[index]
        temperature = self.policy.temperature(question.kind)
        distributions = [
            tuple(normalise([logprob / temperature for logprob in line]) for line in read[index])
            for read in reads
            if index in read
        ]
        order = rotation % len(question.slot_options)
        if self.pools:
            return self.pools[index].with_reads(distributions, order)
        return Pool(reads=tuple(distributions), orders=(order,) * len(distributions))

    def _is_stable(self, answer: Answer) -> bool:
        """Whether more reads would leave an answer as it is, and still not good enough."""
        demands, pool = answer.question.demands, answer.pool
        threshold = demands.threshold(self.policy.entropy_threshold)
        if len(pool.reads) < STABLE_READS or not threshold:
            return False
        lines = range(len(pool.distributions))
        if not all(pool.leads_by(line, STABLE_ERRORS) for line in lines):
            return False
        stays_unsure = any(pool.entropy_exceeds(threshold, line, STABLE_ERRORS) for line in lines)
        return stays_unsure or _stays_improbable(answer)


def _mass(logprobs: LineLogprobs) -> float:
    """What the labels of a line have together, of the line where that is least; never more than 1 by rounding."""
    return min(1.0, *(math.fsum(map(math.exp, line)) for line in logprobs))


def _stays_improbable(answer: Answer) -> bool:
    """Whether an answer's probability is out of reach of what its property demands."""
    error, demanded = answer.std_error, answer.question.demands.min_probability
    return error is not None and answer.reading.probability + STABLE_ERRORS * error < demanded


def check_max_reads(asked: int | None, most: int) -> tuple[Problem, ...]:
    """What is wrong with how many reads a request asks for."""
    if asked is None or asked <= most:
        return ()
    message = f"must be less than or equal to {most}"
    return (Problem(pointer="/policy/max_reads", code="less_than_equal", message=message),)
