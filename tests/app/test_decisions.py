"""The way from a request to a decision, over a scripted engine."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from app.admission import Admission
from app.canvas.decision import Outcome
from app.canvas.errors import NonFiniteLogprobs, PromptTooLong, RubricRejected
from app.canvas.json import Json
from app.canvas.plan import Plan, Planner, SeededRead
from app.decisions import (
    INLINE_CHARS,
    Decision,
    DecisionRequest,
    DecisionService,
    Defaults,
    ServedModel,
    StopReason,
)
from app.errors import DeadlineExceeded, EngineDead, InternalError, Overloaded, Starting
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from engine.fake import FakeEngine, Logprobs
from engine.protocol import EngineDied, ReadFailed
from tests.cases import PAIN, REFILL, TOPIC, rubric


@dataclass(frozen=True)
class WatchedPlanner(Planner):
    """A planner that keeps a record of what it is asked."""

    planned: list[Json] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def plan(self, rubric: Json, instructions: str | None) -> Plan:
        self.planned.append(rubric)
        return super().plan(rubric, instructions)

    def seed_read(self, plan: Plan, state_text: str, seed: int | None) -> SeededRead:
        self.threads.append(threading.get_ident())
        return super().seed_read(plan, state_text, seed)


@pytest.fixture
def watched(planner: Planner) -> WatchedPlanner:
    """The session's planner, watched."""
    return WatchedPlanner(
        tokenizer=planner.tokenizer,
        max_model_len=planner.max_model_len,
        canvas_length=planner.canvas_length,
        max_text_chars=planner.max_text_chars,
    )


@pytest.fixture
def lifecycle() -> Lifecycle:
    """A life that has come to READY."""
    lifecycle = Lifecycle()
    lifecycle.enter(Phase.READY)
    return lifecycle


@pytest.fixture
def admission() -> Admission:
    """Two permits."""
    return Admission(2)


@pytest.fixture
def metrics() -> Metrics:
    """Collectors that have counted nothing."""
    return Metrics()


@pytest.fixture
def service(
    fake: FakeEngine, watched: WatchedPlanner, lifecycle: Lifecycle, admission: Admission, metrics: Metrics
) -> DecisionService:
    """A service over the fake engine that keeps three plans."""
    return DecisionService(
        engine=fake,
        planner=watched,
        model=ServedModel(name="m", fingerprint="sha256:f"),
        defaults=Defaults(entropy_threshold=0.3, deadline_seconds=5.0),
        admission=admission,
        lifecycle=lifecycle,
        metrics=metrics,
        cached_plans=3,
    )


def asking(**changed: Any) -> DecisionRequest:
    """A request of one yes-or-no question unless told."""
    return DecisionRequest(**{"state": "Hello.", "rubric": rubric(refill=REFILL), **changed})


def shares(*probabilities: float) -> Logprobs:
    """A script for the fake: these probabilities at every slot."""
    return lambda _request, _branch, slot: tuple(math.log(p) for p in probabilities[: len(slot.label_token_ids)])


async def test_what_the_engine_is_asked(service: DecisionService, fake: FakeEngine, planner: Planner) -> None:
    """Prompt and canvas of the plan, and every slot with its own question's labels."""
    asked = rubric(topic=TOPIC, refill=REFILL)
    await service.decide(asking(rubric=asked, seed=7))
    plan = planner.plan(asked, None)
    read = planner.seed_read(plan, "Hello.", 7)
    (request,) = fake.requests
    (branch,) = request.branches
    assert (request.prompt_token_ids, branch.canvas_token_ids) == (read.prompt_token_ids, read.canvas_token_ids)
    assert (branch.suffix_token_ids, request.is_constrained, request.cache_salt) == ((), True, None)
    assert [slot.position for slot in branch.canvas_slots] == list(plan.canvas.slots)
    assert [len(slot.label_token_ids) for slot in branch.canvas_slots] == [4, 2]
    assert [slot.label_token_ids for slot in branch.canvas_slots] == [
        tuple(label.token_id for label in labels) for labels in plan.labels
    ]


async def test_what_comes_back(service: DecisionService, fake: FakeEngine) -> None:
    """Each question's own logprobs, normalised; value, outcome, seed, the read it rests on."""
    fake.logprobs = shares(0.05, 0.8, 0.05, 0.1)
    made = await service.decide(asking(rubric=rubric(topic=TOPIC, refill=REFILL), seed=7))
    assert made.value == {"topic": "symptoms", "refill": False}
    first, second = made.answers
    assert first.probabilities == pytest.approx((0.05, 0.8, 0.05, 0.1))
    assert second.probabilities == pytest.approx((0.05 / 0.85, 0.8 / 0.85))
    assert (made.seed, made.read.canvas_tokens, len(made.read.engine_steps)) == (7, 10, 1)
    assert made.model == ServedModel(name="m", fingerprint="sha256:f")
    assert made.total_seconds >= 0


@dataclass(frozen=True)
class ThresholdCase:
    id: str
    asked: float | None
    outcome: Outcome
    stop_reason: StopReason


# The entropy of 0.9 and 0.1 is 0.469.
THRESHOLDS = (
    ThresholdCase("the server's", None, Outcome.UNCERTAIN, StopReason.MAX_READS),
    ThresholdCase("below", 0.46, Outcome.UNCERTAIN, StopReason.MAX_READS),
    ThresholdCase("above", 0.47, Outcome.DECIDED, StopReason.ENTROPY),
    ThresholdCase("zero is not none", 0.0, Outcome.UNCERTAIN, StopReason.MAX_READS),
)


@pytest.mark.parametrize("case", THRESHOLDS, ids=lambda case: case.id)
async def test_the_threshold(case: ThresholdCase, service: DecisionService, fake: FakeEngine, metrics: Metrics) -> None:
    """The request's if it names one; whether reading stopped because all is decided or because it was read once."""
    fake.logprobs = shares(0.9, 0.1)
    made = await service.decide(asking(entropy_threshold=case.asked))
    assert (made.outcome, made.stop_reason) == (case.outcome, case.stop_reason)
    value = metrics.registry.get_sample_value
    assert value("decide_outcomes_total", {"outcome": case.outcome.value}) == 1
    assert value("decide_stop_reasons_total", {"reason": case.stop_reason.value}) == 1


async def test_one_uncertain_answer_makes_the_decision_uncertain(service: DecisionService, fake: FakeEngine) -> None:
    """Each answer has its own outcome."""
    fake.logprobs = lambda _request, _branch, slot: (0.0, -50.0) if slot.position == 2 else (-0.7, -0.7)
    made = await service.decide(asking(rubric=rubric(a=REFILL, b=REFILL)))
    assert [one.outcome for one in made.answers] == [Outcome.DECIDED, Outcome.UNCERTAIN]
    assert made.outcome is Outcome.UNCERTAIN


async def test_a_decision_is_counted(service: DecisionService, metrics: Metrics) -> None:
    """Its read by path, its engine steps, its answers by kind."""
    await service.decide(asking(rubric=rubric(a=REFILL, b=PAIN, c=PAIN)))
    value = metrics.registry.get_sample_value
    assert value("decide_reads_total", {"path": "fused"}) == 1
    assert value("decide_reads_total", {"path": "two_step"}) == 0
    assert value("decide_engine_steps_total") == 1
    assert value("decide_reads_per_decision_sum") == 1
    assert value("decide_entropy_count", {"kind": "boolean"}) == 1
    assert value("decide_entropy_count", {"kind": "score"}) == 2


async def test_a_decision_on_the_two_step_path(service: DecisionService, fake: FakeEngine, metrics: Metrics) -> None:
    """It costs two engine steps, is counted as such, and says the same."""
    fused = await service.decide(asking())
    fake.settings = replace(fake.settings, fused_reads=False)
    made = await service.decide(asking())
    assert without_time(made) == without_time(fused)
    assert (len(fused.read.engine_steps), len(made.read.engine_steps)) == (1, 2)
    value = metrics.registry.get_sample_value
    assert value("decide_reads_total", {"path": "fused"}) == value("decide_reads_total", {"path": "two_step"}) == 1
    assert value("decide_engine_steps_total") == 3


def without_time(made: Decision) -> dict[str, Any]:
    """A decision without what may differ between two equal requests."""
    return {
        "value": made.value,
        "answers": made.answers,
        "seed": made.seed,
        "logprobs": made.read.branch_logprobs,
        "outcome": made.outcome,
    }


async def test_the_start_up_decision_is_not_counted(service: DecisionService, metrics: Metrics) -> None:
    """Operators count what callers asked."""
    await service.decide_unguarded(asking())
    value = metrics.registry.get_sample_value
    assert value("decide_engine_steps_total") == value("decide_reads_per_decision_count") == 0
    assert value("decide_reads_total", {"path": "fused"}) == value("decide_reads_total", {"path": "two_step"}) == 0


async def test_a_repeat_is_a_repeat(service: DecisionService) -> None:
    """R17: the same request, the same decision under another id; another seed or state, another one."""
    first, again = [await service.decide(asking()) for _ in range(2)]
    assert without_time(first) == without_time(again)
    assert first.id != again.id
    for other in (asking(seed=1), asking(state="Bye."), asking(instructions="Be strict.")):
        assert without_time(await service.decide(other)) != without_time(first)


async def test_a_rubric_is_compiled_once(service: DecisionService, watched: WatchedPlanner) -> None:
    """Per rubric and instructions, whatever the state."""
    asked = (
        asking(),
        asking(state="Bye."),
        asking(instructions="i"),
        asking(instructions="i", seed=3),
        asking(rubric=rubric(refill={**REFILL, "title": "Another"})),
    )
    for request in asked:
        await service.decide(request)
    assert len(watched.planned) == 3


async def test_plans_kept_are_bounded(service: DecisionService, watched: WatchedPlanner) -> None:
    """S12: three are kept, the one unused for longest goes."""

    async def ask(*titles: str) -> list[str]:
        watched.planned.clear()
        for title in titles:
            await service.decide(asking(rubric=rubric(a={**REFILL, "title": title})))
        return [str(planned) for planned in watched.planned]

    assert len(await ask("1", "2", "3")) == 3
    assert await ask("1", "2", "3") == []
    assert len(await ask("4")) == 1
    assert await ask("2", "3", "4") == []
    assert len(await ask("1")) == 1


async def test_any_number_of_rubrics_keeps_three_plans(service: DecisionService, watched: WatchedPlanner) -> None:
    """S12: whatever is kept was asked last; what is refused is not kept."""
    for number in range(300):
        await service.decide(asking(rubric=rubric(a={**REFILL, "title": str(number)})))
        with pytest.raises(RubricRejected):
            await service.decide(asking(rubric={"title": str(number)}))
    watched.planned.clear()
    for number in range(299, 0, -1):
        await service.decide(asking(rubric=rubric(a={**REFILL, "title": str(number)})))
    assert len(watched.planned) == 299 - 3


async def test_long_states_are_tokenised_beside_the_loop(service: DecisionService, watched: WatchedPlanner) -> None:
    """R3: they do not hold up the event loop, which answers everybody else; short ones are not worth a thread."""
    for state in ("a" * INLINE_CHARS, "a" * (INLINE_CHARS + 1)):
        with pytest.raises(PromptTooLong):
            await service.decide(asking(state=state))
    at_bound, longer = watched.threads
    assert at_bound == threading.get_ident() != longer


async def test_the_limit_is_checked_before_tokenising(
    service: DecisionService, fake: FakeEngine, watched: WatchedPlanner
) -> None:
    """R1: the one over the limit costs nothing; when one leaves, the next is taken."""
    fake.gate.clear()
    admitted = [asyncio.create_task(service.decide(asking(seed=seed))) for seed in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await service.decide(asking())
    assert len(watched.threads) == len(fake.requests) == 2
    fake.gate.set()
    await asyncio.gather(*admitted)
    assert await service.decide(asking())


async def test_nothing_is_decided_before_ready(
    service: DecisionService, lifecycle: Lifecycle, fake: FakeEngine
) -> None:
    """R12: refused with the phase's reason, and the engine is not asked."""
    lifecycle.phase = Phase.STARTING
    with pytest.raises(Starting):
        await service.decide(asking())
    assert not fake.requests


async def test_a_deadline_aborts_the_read(service: DecisionService, fake: FakeEngine, admission: Admission) -> None:
    """R6: the engine's request is aborted, the permit is free, and so is the next read."""
    fake.gate.clear()
    with pytest.raises(DeadlineExceeded):
        await service.decide(asking(deadline_seconds=0.01))
    assert list(fake.aborted) == [fake.requests[0].request_id]
    assert admission.inflight == 0
    fake.gate.set()
    assert await service.decide(asking())


@pytest.mark.parametrize(("asked", "server"), [(None, 0.01), (60.0, 0.01), (0.01, 60.0)])
async def test_the_shorter_deadline_holds(
    asked: float | None, server: float, service: DecisionService, fake: FakeEngine
) -> None:
    """R6: a caller can have less time than the server grants, never more."""
    service._defaults = Defaults(entropy_threshold=0.3, deadline_seconds=server)
    fake.gate.clear()
    async with asyncio.timeout(30):
        with pytest.raises(DeadlineExceeded):
            await service.decide(asking(deadline_seconds=asked))


async def test_a_cancelled_request_aborts_its_read(
    service: DecisionService, fake: FakeEngine, admission: Admission, metrics: Metrics
) -> None:
    """R4, below the socket: a cancelled task leaves neither a read nor a permit behind."""
    fake.gate.clear()
    task = asyncio.create_task(service.decide(asking()))
    await asyncio.sleep(0)
    assert metrics.registry.get_sample_value("decide_inflight") == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert list(fake.aborted) == [fake.requests[0].request_id]
    assert (admission.inflight, metrics.registry.get_sample_value("decide_inflight")) == (0, 0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
async def test_a_logprob_that_is_no_number(bad: float, service: DecisionService, fake: FakeEngine) -> None:
    """R18: fails that request and counts as no decision."""
    fake.logprobs = lambda *_: (bad, -1.0)
    with pytest.raises(NonFiniteLogprobs):
        await service.decide(asking())


async def test_a_failed_read_fails_its_request_only(
    service: DecisionService, fake: FakeEngine, admission: Admission, lifecycle: Lifecycle
) -> None:
    """R15: loudly, with the permit given back; the next is served."""
    fake.read_error = ReadFailed("x")
    with pytest.raises(ReadFailed):
        await service.decide(asking())
    assert (admission.inflight, lifecycle.phase) == (0, Phase.READY)
    fake.read_error = None
    assert await service.decide(asking())


async def test_a_dead_engine_ends_the_service_at_once(
    service: DecisionService, fake: FakeEngine, admission: Admission, lifecycle: Lifecycle
) -> None:
    """R13: the first to notice says so for all: `/health` is 503 whenever `/decide` is."""
    fake.is_dead = True
    with pytest.raises(EngineDied):
        await service.decide(asking())
    assert (admission.inflight, lifecycle.phase) == (0, Phase.FAILED)
    with pytest.raises(EngineDead):
        await service.decide(asking())
    assert len(fake.requests) == 1


async def test_a_prompt_that_is_too_long(service: DecisionService, fake: FakeEngine) -> None:
    """Never reaches the engine."""
    with pytest.raises(PromptTooLong):
        await service.decide(asking(state="word " * 5000))
    assert not fake.requests


async def test_a_decision_is_checked_before_it_is_sent(
    service: DecisionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision is checked against its rubric; one that does not satisfy it is a bug."""
    monkeypatch.setattr("app.decisions.decision_of", lambda _: {"refill": "maybe"})
    with pytest.raises(InternalError, match="this is a bug"):
        await service.decide(asking())


async def test_ids_of_reads_and_decisions_are_ours(service: DecisionService, fake: FakeEngine) -> None:
    """S4, S5: unique, of a fixed form, none of the caller's text in them."""
    made = [await service.decide(asking()) for _ in range(3)]
    names = [one.id for one in made] + [request.request_id for request in fake.requests]
    assert len(set(names)) == 6
    assert all(name.split("_")[1].isalnum() and len(name.split("_")[1]) == 24 for name in names)
