"""The entropy policy: which reads it asks for, and when it stops."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.canvas.decision import Outcome
from app.canvas.errors import NonFiniteLogprobs
from app.canvas.noise import is_sampled, read_seed
from app.canvas.plan import LineLogprobs
from app.canvas.policy import Inquiry, Policy, Round, StopReason
from app.canvas.question import Kind
from app.canvas.rubric import Rubric, compile_rubric
from tests.app.canvas.rubrics import LIMITS, YES_NO, rubric

SEED = 42
# What a question reads as, by how often it was read before: probabilities per line.
Script = Callable[[int], tuple[tuple[float, ...], ...]]


def yes(*shares: float) -> Script:
    """A yes-or-no question: these probabilities of yes, one read after another, over and over."""
    return lambda read: ((shares[read % len(shares)], 1 - shares[read % len(shares)]),)


SURE, UNSURE = yes(0.999), yes(0.6)
# Read after read undecided between the two options.
TORN = yes(0.3, 0.7)


@dataclass
class Reader:
    """Makes the rounds that an inquiry asks for.

    Attributes:
        together: questions are read together, as in one canvas.
        seconds: a round takes so long for each of its reads.
        budget_seconds: for all.
    """

    rubric: Rubric
    scripts: list[Script]
    policy: Policy
    together: bool = False
    seconds: float = 0.0
    budget_seconds: float = 10.0
    rounds: list[Round] = field(default_factory=list)
    _read: dict[int, int] = field(default_factory=dict)

    def run(self) -> Inquiry:
        """Read until it stops."""
        inquiry = Inquiry(rubric=self.rubric, policy=self.policy, seed=SEED)
        while isinstance(made := inquiry.next, Round):
            self.rounds.append(made)
            took = self.seconds * len(made.seeds)
            self.budget_seconds -= took
            reads = [self._one(made) for _ in made.seeds]
            inquiry = inquiry.observe(reads, round_seconds=took, remaining_seconds=self.budget_seconds)
        return inquiry

    def _one(self, made: Round) -> Mapping[int, LineLogprobs]:
        asked = range(len(self.scripts)) if self.together else made.questions
        found = {}
        for index in asked:
            number = self._read.get(index, 0)
            self._read[index] = number + 1
            found[index] = tuple(tuple(map(math.log, line)) for line in self.scripts[index](number))
        return found


def reader(*scripts: Script, threshold: float = 0.3, max_reads: int = 8, **fields: Any) -> Reader:
    """A reader of yes-or-no questions."""
    properties = fields.pop("properties", {f"q{i}": YES_NO for i in range(len(scripts))})
    policy = Policy(entropy_threshold=threshold, max_reads=max_reads, **fields.pop("policy", {}))
    return Reader(rubric=compile_rubric(rubric(properties), LIMITS), scripts=list(scripts), policy=policy, **fields)


@dataclass(frozen=True)
class Case:
    id: str
    reader: Reader
    stop: StopReason
    reads: list[int]


CASES = (
    Case("sure at once", reader(SURE), StopReason.ENTROPY, [1]),
    Case("sure in the end", reader(yes(0.9, 0.9999, 0.9999, 0.9999)), StopReason.ENTROPY, [1, 1]),
    Case("never sure", reader(TORN), StopReason.MAX_READS, [1, 1, 2, 4]),
    Case("one read", reader(TORN, max_reads=1), StopReason.MAX_READS, [1]),
    Case("two reads", reader(TORN, max_reads=2), StopReason.MAX_READS, [1, 1]),
    Case("what is left of the budget", reader(TORN, max_reads=7), StopReason.MAX_READS, [1, 1, 2, 3]),
    Case("a large budget", reader(TORN, max_reads=20), StopReason.MAX_READS, [1, 1, 2, 4, 8, 4]),
    Case("stable", reader(UNSURE), StopReason.STABLE, [1, 1, 2]),
    Case("stable but for one", reader(UNSURE, TORN), StopReason.MAX_READS, [1, 1, 2, 4]),
    Case("threshold 0", reader(UNSURE, threshold=0.0), StopReason.MAX_READS, [1, 1, 2, 4]),
    Case("threshold 1", reader(TORN, threshold=1.0), StopReason.ENTROPY, [1]),
    Case("no time for another", reader(TORN, seconds=1.0, budget_seconds=1.9), StopReason.DEADLINE, [1]),
    Case("time for one more", reader(TORN, seconds=1.0, budget_seconds=2.0), StopReason.DEADLINE, [1, 1]),
    Case("not for two", reader(TORN, seconds=1.0, budget_seconds=3.25), StopReason.DEADLINE, [1, 1]),
    Case("for two", reader(TORN, seconds=1.0, budget_seconds=3.35), StopReason.DEADLINE, [1, 1, 2]),
    Case("enough time", reader(TORN, seconds=1.0, budget_seconds=8.0), StopReason.MAX_READS, [1, 1, 2, 4]),
    # Entropy 0.971 and 0.99, and no lead of more than three standard errors, or one.
    Case("no clear lead", reader(yes(0.66, 0.54)), StopReason.MAX_READS, [1, 1, 2, 4]),
    Case("a clear lead", reader(yes(0.62, 0.58)), StopReason.STABLE, [1, 1, 2]),
    # Entropy 0.61: over a threshold of 0.6, and clearly over one of 0.5.
    Case("not clearly over", reader(yes(0.83, 0.87), threshold=0.6), StopReason.MAX_READS, [1, 1, 2, 4]),
    Case("clearly over", reader(yes(0.83, 0.87), threshold=0.45), StopReason.STABLE, [1, 1, 2]),
    Case("late and sure", reader(SURE, seconds=1.0, budget_seconds=0.5), StopReason.ENTROPY, [1]),
    Case("late and spent", reader(TORN, max_reads=1, seconds=1.0, budget_seconds=0.5), StopReason.MAX_READS, [1]),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_when_it_stops(case: Case) -> None:
    """Why, and after which rounds; every read with a seed of its own, the first with the decision's."""
    case.reader.rounds.clear()
    inquiry = case.reader.run()
    assert (inquiry.next, [len(made.seeds) for made in case.reader.rounds]) == (case.stop, case.reads)
    assert inquiry.seeds == tuple(read_seed(SEED, number) for number in range(sum(case.reads)))
    assert inquiry.rounds == len(case.reads)
    assert all(made.rotation == 0 for made in case.reader.rounds)


def test_seeds() -> None:
    """Known values: a decision made years ago can be made again."""
    assert [read_seed(SEED, number) for number in range(4)] == [
        42,
        8602042885007588,
        5230375576556377,
        5889878752567891,
    ]
    assert len({read_seed(seed, number) for seed in range(100) for number in range(100)}) == 10_000


def test_what_is_settled_is_not_read_again() -> None:
    """Each round asks for the questions that are not, and no others; their reads are their own."""
    asked = reader(SURE, TORN, yes(0.9, 0.9999), SURE)
    inquiry = asked.run()
    assert [made.questions for made in asked.rounds] == [(0, 1, 2, 3), (1, 2), (1,), (1,)]
    assert [len(answer.pool.reads) for answer in inquiry.answers] == [1, 8, 2, 1]


def test_what_was_read_beside_it_counts() -> None:
    """Questions in one canvas are read together; those that were settled have the reads all the same."""
    inquiry = reader(SURE, TORN, together=True).run()
    assert [len(answer.pool.reads) for answer in inquiry.answers] == [8, 8]


def test_what_is_skipped_is_not_read_for() -> None:
    """However uncertain: it is in no decision. When it is in again, it is read again."""
    schema = rubric(
        {"a": YES_NO, "x": YES_NO}, **{"if": {"properties": {"a": {"const": True}}}, "then": {"required": ["x"]}}
    )
    compiled = compile_rubric(schema, LIMITS)
    policy = Policy(entropy_threshold=0.3, max_reads=8)
    assert Reader(rubric=compiled, scripts=[yes(0.001), TORN], policy=policy).run().seeds == (SEED,)
    # Uncertain, and first no, then yes.
    wavering = Reader(rubric=compiled, scripts=[yes(0.4, 0.9999, 0.9999, 0.9999), TORN], policy=policy)
    inquiry = wavering.run()
    assert [made.questions for made in wavering.rounds][:3] == [(0, 1), (0,), (0, 1)]
    assert inquiry.answers[1].outcome is Outcome.UNCERTAIN


def test_demands_of_a_property_go_before_the_policy() -> None:
    """A threshold of its own, whichever is higher; and a probability that has to be reached."""
    asked = {
        "low": YES_NO | {"x-entropy-threshold": 0.05},
        "high": YES_NO | {"x-entropy-threshold": 1},
        "least": YES_NO | {"x-min-probability": 0.99},
    }
    inquiry = reader(yes(0.98), TORN, yes(0.98), properties=asked).run()
    assert [answer.outcome.value for answer in inquiry.answers] == ["uncertain", "decided", "uncertain"]
    assert inquiry.next is StopReason.STABLE  # the first and the last are as sure as they will ever be
    assert len(inquiry.seeds) == 4


def test_a_probability_that_may_still_be_reached() -> None:
    """0.85 with an error of 0.01 may be 0.87 in the end, and not 0.95."""
    for demanded, stop in ((0.87, StopReason.MAX_READS), (0.95, StopReason.STABLE)):
        asked = {"q": YES_NO | {"x-entropy-threshold": 1, "x-min-probability": demanded}}
        assert reader(yes(0.83, 0.87), properties=asked).run().next is stop


def test_what_is_stable_is_not_read_for_anothers_sake() -> None:
    """So that where questions are read apart no question moves another's answer."""
    asked = reader(UNSURE, TORN)
    asked.run()
    assert [made.questions for made in asked.rounds] == [(0, 1), (0, 1), (0, 1), (1,)]


def test_what_stands_in() -> None:
    """The decision holds it while the answer is uncertain; what was read is reported; conditions go by what is held."""
    schema = rubric(
        {"a": YES_NO | {"x-on-uncertain": False}, "x": YES_NO},
        **{"if": {"properties": {"a": {"const": True}}}, "then": {"required": ["x"]}},
    )
    compiled = compile_rubric(schema, LIMITS)
    policy = Policy(entropy_threshold=0.3, max_reads=4)
    inquiry = Reader(rubric=compiled, scripts=[yes(0.6), SURE], policy=policy).run()
    first, second = inquiry.answers
    assert inquiry.decision == {"a": False}
    assert (first.outcome, first.value, first.reading.value) == (Outcome.UNCERTAIN, False, True)
    assert second.outcome is Outcome.SKIPPED
    sure = Reader(rubric=compiled, scripts=[SURE, SURE], policy=policy).run()
    assert sure.decision == {"a": True, "x": True}


def test_orders_rotate_from_round_to_round() -> None:
    """Round by round another option is first; a question with fewer options comes round sooner."""
    properties = {"two": YES_NO, "three": {"enum": ["a", "b", "c"]}}
    scripts: list[Script] = [TORN, lambda read: (((0.4, 0.3, 0.3), (0.3, 0.4, 0.3))[read % 2],)]
    asked = reader(*scripts, properties=properties, policy={"rotates_options": True})
    inquiry = asked.run()
    assert [made.rotation for made in asked.rounds] == [0, 1, 2, 3]
    assert [answer.pool.orders for answer in inquiry.answers] == [(0, 1, 0, 0, 1, 1, 1, 1), (0, 1, 2, 2, 0, 0, 0, 0)]


def test_agreement_and_standard_error() -> None:
    """Of the answer of all reads together."""
    (answer,) = reader(yes(0.3, 0.9, 0.8, 0.7), max_reads=4).run().answers
    assert (answer.reading.value, answer.agreement) == (True, 0.75)
    assert answer.reading.probability == pytest.approx(0.675)
    assert answer.std_error == pytest.approx(0.1315, abs=1e-4)


def test_agreement_of_lists() -> None:
    """Reads agree that say the same list; the error is that of the option that is least sure."""
    properties = {"some": {"type": "array", "items": {"enum": ["x", "y"]}}}

    def lists(read: int) -> tuple[tuple[float, ...], ...]:
        return (0.99, 0.01), ((0.6, 0.4), (0.2, 0.8))[read % 2]

    (answer,) = reader(lists, properties=properties, max_reads=4, threshold=0.0).run().answers
    assert (answer.reading.value, answer.agreement) == (["x"], 0.5)
    assert answer.reading.cell == (1, 1)
    assert answer.reading.probability == pytest.approx(0.6)
    assert answer.std_error == pytest.approx(math.sqrt(4 * 0.04 / 3) / 2)


def test_temperatures() -> None:
    """Each kind's own, before reads are pooled; 1 for those that have none."""
    properties = {"c": {"enum": ["a", "b"]}, "b": YES_NO}
    policy = {"temperatures": {Kind.CHOICE: 2.0}}
    first, second = reader(yes(0.9), yes(0.9), properties=properties, policy=policy, max_reads=1).run().answers
    assert first.reading.probability == pytest.approx(3 / 4)  # of 9 to 1 the roots are 3 to 1
    assert second.reading.probability == pytest.approx(0.9)


def test_label_mass() -> None:
    """Where logprobs are of the whole vocabulary: what the labels have of it, of the line where that is least."""
    compiled = compile_rubric(rubric({"a": YES_NO, "s": {"type": "array", "items": {"enum": ["x", "y"]}}}), LIMITS)
    start = Inquiry(rubric=compiled, policy=Policy(entropy_threshold=0.3, max_reads=2), seed=SEED)
    read = {0: ((math.log(0.5), math.log(0.2)),), 1: ((math.log(0.9), math.log(0.1)), (math.log(0.3), math.log(0.1)))}
    told = start.observe([read], round_seconds=0.0, remaining_seconds=1.0, is_over_vocabulary=True)
    assert [answer.pool.label_mass for answer in told.answers] == pytest.approx([0.7, 0.4])
    assert told.answers[0].reading.probability == pytest.approx(5 / 7)
    again = told.observe([read], round_seconds=0.0, remaining_seconds=1.0)
    assert [answer.pool.label_mass for answer in again.answers] == pytest.approx([0.7, 0.4])
    untold = start.observe([read], round_seconds=0.0, remaining_seconds=1.0)
    assert [answer.pool.label_mass for answer in untold.answers] == [None, None]


def test_a_share_of_seeds_is_sampled() -> None:
    """The same ones every time."""
    sampled = [is_sampled(seed, 0.1) for seed in range(10_000)]
    assert sum(sampled) == pytest.approx(1000, abs=100)
    assert sampled == [is_sampled(seed, 0.1) for seed in range(10_000)]
    assert not any(is_sampled(seed, 0.0) for seed in range(100))
    assert all(is_sampled(seed, 1.0) for seed in range(100))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_logprob_that_is_no_number_is_no_read(bad: float) -> None:
    """R18: in a later round too."""
    start = Inquiry(rubric=compile_rubric(rubric(), LIMITS), policy=Policy(entropy_threshold=0.0, max_reads=2), seed=0)
    known = start.observe([{0: ((-1.0, -1.0),)}], round_seconds=0.0, remaining_seconds=1.0)
    with pytest.raises(NonFiniteLogprobs):
        known.observe([{0: ((-1.0, bad),)}], round_seconds=0.0, remaining_seconds=1.0)
