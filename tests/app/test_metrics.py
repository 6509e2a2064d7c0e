"""What operators see: names, labels, and what is counted."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from prometheus_client import REGISTRY, Counter
from prometheus_client.parser import text_string_to_metric_families

from app.canvas.decision import decide
from app.canvas.plan import Planner
from app.canvas.question import Kind
from app.metrics import Metrics
from engine.protocol import EngineStep, Fallback, ReadResult
from tests.app.canary import CANARY
from tests.app.canvas.pools import pools_of
from tests.cases import MOOD, PAIN, REFILL, TOPIC, rubric


@dataclass(frozen=True)
class Collector:
    """A metric as dashboards know it."""

    name: str
    kind: str
    labels: frozenset[str] = frozenset()


# The contract's, as far as this version has them.
COLLECTORS = (
    Collector("decide_requests", "counter", frozenset({"route", "status"})),
    Collector("decide_request_seconds", "histogram", frozenset({"route"})),
    Collector("decide_reads", "counter", frozenset({"path"})),
    Collector("decide_fallbacks", "counter", frozenset({"reason"})),
    Collector("decide_engine_steps", "counter"),
    Collector("decide_engine_step_seconds", "histogram"),
    Collector("decide_reads_per_decision", "histogram"),
    Collector("decide_entropy", "histogram", frozenset({"kind"})),
    Collector("decide_entropy_nats", "histogram", frozenset({"kind"})),
    Collector("decide_label_mass", "histogram", frozenset({"kind"})),
    Collector("decide_outcomes", "counter", frozenset({"outcome"})),
    Collector("decide_stop_reasons", "counter", frozenset({"reason"})),
    Collector("decide_prompt_tokens", "counter"),
    Collector("decide_cached_tokens", "counter"),
    Collector("decide_inflight", "gauge"),
    Collector("decide_rejected", "counter", frozenset({"reason"})),
    Collector("decide_connections_ended", "counter", frozenset({"reason"})),
)


@pytest.fixture
def metrics() -> Metrics:
    """Collectors that have counted nothing."""
    return Metrics()


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    """A sample's value, None if there is none."""
    return metrics.registry.get_sample_value(name, labels)


def read(
    *steps: int, seconds: float = 0.5, branches: int = 1, fused_reads: int = 1, fallbacks: tuple[Fallback, ...] = ()
) -> ReadResult:
    """A read of 100 prompt tokens, 32 of them cached, that took part in these engine steps."""
    return ReadResult(
        branch_logprobs=((),) * branches,
        fused_reads=fused_reads,
        fallbacks=fallbacks,
        prompt_tokens=100,
        cached_tokens=32,
        canvas_tokens=6,
        engine_steps=tuple(EngineStep(index=index, seconds=seconds) for index in steps),
        queue_seconds=0.0,
    )


def test_names_and_labels(metrics: Metrics) -> None:
    """C2: dashboards and alerts rely on them: no other name, no other label."""
    metrics.requests.labels(route="/decide", status="200").inc()
    metrics.request_seconds.labels(route="/decide").observe(1)
    metrics.entropy.labels(kind="score").observe(0)
    metrics.entropy_nats.labels(kind="score").observe(0)
    metrics.label_mass.labels(kind="score").observe(1)
    metrics.outcomes.labels(outcome="decided").inc()
    metrics.stop_reasons.labels(reason="entropy").inc()
    metrics.rejected.labels(reason="overloaded").inc()
    found = {
        Collector(family.name, family.type, frozenset(name for s in family.samples for name in s.labels) - {"le"})
        for family in metrics.registry.collect()
    }
    assert found == set(COLLECTORS)


def test_every_collector_says_what_it_is(metrics: Metrics) -> None:
    """The help text on the page."""
    assert all(family.documentation for family in metrics.registry.collect())


def reads(metrics: Metrics) -> tuple[float | None, float | None]:
    """Reads counted so far: fused, two-step."""
    fused, two_step = (sample(metrics, "decide_reads_total", path=path) for path in ("fused", "two_step"))
    return fused, two_step


def fallbacks(metrics: Metrics) -> dict[Fallback, float | None]:
    """Fallbacks counted so far, by reason."""
    return {reason: sample(metrics, "decide_fallbacks_total", reason=reason.value) for reason in Fallback}


def test_reads_are_there_from_the_start(metrics: Metrics) -> None:
    """A rate over a series that appears with its first event misses that event: paths and reasons are 0, not absent."""
    assert reads(metrics) == (0, 0)
    assert fallbacks(metrics) == dict.fromkeys(Fallback, 0)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A result, and what it adds to the reads of each path and to the fallbacks."""

    id: str
    branches: int = 1
    fused_reads: int = 0
    fallbacks: tuple[Fallback, ...] = ()
    two_step: int = 0


COUNTED = (
    Counted(id="fused", fused_reads=1),
    Counted(id="two steps, as asked", two_step=1),
    Counted(id="a bundle", branches=5, fused_reads=5),
    Counted(id="branches alone, as asked", branches=3, two_step=3),
    Counted(id="a bundle that fell back", branches=2, fallbacks=(Fallback.BLOCKS,) * 2, two_step=2),
    Counted(
        id="some of each",
        branches=6,
        fused_reads=2,
        fallbacks=(Fallback.BUDGET, Fallback.CONTEXT, Fallback.BUDGET),
        two_step=4,
    ),
    *(Counted(id=reason.value, fallbacks=(reason,), two_step=1) for reason in Fallback),
)


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.id)
def test_branches_are_counted_by_path(metrics: Metrics, case: Counted) -> None:
    """Each branch is a read; those that should have been fused also by the reason why they were not."""
    metrics.observe_read(read(1, branches=case.branches, fused_reads=case.fused_reads, fallbacks=case.fallbacks))
    assert reads(metrics) == (case.fused_reads, case.two_step)
    assert fallbacks(metrics) == {reason: case.fallbacks.count(reason) for reason in Fallback}


def test_a_read_is_counted_with_its_tokens(metrics: Metrics) -> None:
    """On top of those before it, with prompt and cached tokens."""
    metrics.observe_read(read(1, 2, fused_reads=0, fallbacks=(Fallback.BUDGET,)))
    metrics.observe_read(read(3))
    metrics.observe_read(read(4, branches=2, fused_reads=1, fallbacks=(Fallback.BUDGET,)))
    assert reads(metrics) == (2, 2)
    assert fallbacks(metrics)[Fallback.BUDGET] == 2
    assert sample(metrics, "decide_prompt_tokens_total") == 300
    assert sample(metrics, "decide_cached_tokens_total") == 96


def test_an_engine_step_is_counted_once(metrics: Metrics) -> None:
    """Reads share steps, and each reports all of its own when it ends, in any order."""
    for result in (read(1, 2), read(1, 2), read(5, 6), read(3, 6), read(2, 3)):
        metrics.observe_read(result)
    assert sample(metrics, "decide_engine_steps_total") == 5
    assert sample(metrics, "decide_engine_step_seconds_count") == 5
    assert sample(metrics, "decide_engine_step_seconds_sum") == 2.5


def test_every_step_of_a_long_life_is_counted(metrics: Metrics) -> None:
    """What is remembered of old steps is bounded, and the count is right all the same."""
    for step in range(1, 10_001):
        metrics.observe_read(read(step))
        metrics.observe_read(read(step))
    assert sample(metrics, "decide_engine_steps_total") == 10_000


EVERY_KIND = rubric(
    **{
        CANARY: {**TOPIC, "title": CANARY},
        "boolean": REFILL,
        "score": PAIN,
        "probability": {"type": "number", "minimum": 0, "maximum": 1},
        "selection": {"type": "array", "items": {"enum": ["x", "y", "z"]}},
        "presence": {"anyOf": [{"type": "object", "properties": {"mood": MOOD}}, {"type": "null"}]},
    }
)
# Every line of every kind undecided: the most entropy there is.
NATS = {"choice": 1.386294361 + 1.098612289, "boolean": 2 * 0.693147181, "score": 1.609437912}
MOST_NATS = {**NATS, "probability": 0.693147181, "selection": 0.693147181}


def test_entropy_of_answers(metrics: Metrics, planner: Planner) -> None:
    """Normalised and in nats, by kind of question. P4: every kind there is, and nothing that a caller named."""
    plan = planner.plan(EVERY_KIND)
    read = [[(-1.0,) * len(slot.options) for slot in branch.slots] for branch in plan.branches]
    undecided = tuple(plan.collect(plan.branches, read).values())
    _, answers = decide(plan.rubric, pools_of(undecided), 0.3)
    for answer in answers:
        metrics.observe_answer(answer)
    assert {kind: sample(metrics, "decide_entropy_nats_sum", kind=kind) for kind in Kind} == pytest.approx(MOST_NATS)
    counts = {kind: sample(metrics, "decide_entropy_sum", kind=kind) for kind in Kind}
    assert counts == pytest.approx({"choice": 2, "boolean": 2, "score": 1, "probability": 1, "selection": 1})
    (family,) = (family for family in metrics.registry.collect() if family.name == "decide_entropy")
    assert {found.labels["kind"] for found in family.samples} == set(Kind)
    assert CANARY.encode() not in metrics.exposition()


def test_the_page_holds_ours_and_the_librarys(metrics: Metrics) -> None:
    """vLLM's collectors are on the client library's own registry; both are on one valid page."""
    theirs = Counter("vllm:test_metrics", "Stands for vLLM's own.")
    try:
        page = metrics.exposition().decode()
    finally:
        REGISTRY.unregister(theirs)
    families = {family.name for family in text_string_to_metric_families(page)}
    assert {"vllm:test_metrics", "decide_inflight"} <= families


def test_applications_count_apart() -> None:
    """Two in one process, as in tests, do not share a counter."""
    first, second = Metrics(), Metrics()
    first.observe_read(read(1))
    assert sample(second, "decide_engine_steps_total") == 0
