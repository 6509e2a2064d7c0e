"""The way from a request to a decision, over a scripted engine."""

from __future__ import annotations

import asyncio
import math
import threading
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given

from app.admission import Admission
from app.canvas.decision import Outcome
from app.canvas.errors import NonFiniteLogprobs, PromptTooLong, RubricRejected
from app.canvas.json import Json
from app.canvas.plan import Layout, Order, Plan, Planner
from app.canvas.policy import StopReason
from app.decisions import (
    Decision,
    DecisionRequest,
    DecisionService,
    Defaults,
    ServedModel,
    read_request,
)
from app.errors import DeadlineExceeded, EngineDead, InternalError, Overloaded, Starting
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from app.offload import INLINE_SIZE
from app.plans import PlanRequest, Plans
from engine.fake import FakeEngine, Logprobs, hashed_logprobs
from engine.protocol import MAX_LABELS_PER_READ, Branch, CanvasSlot, EngineDied, ReadFailed, ReadRequest
from tests.app.canvas.plans import layouts, orders, questions, rubric_of, toy_planner
from tests.app.service import until
from tests.cases import PAIN, REFILL, TOPIC, rubric

SYMPTOMS = {"type": "array", "items": {"enum": ["pain", "fever", "cough"]}}
WAYS = [(layout, order) for layout in Layout for order in Order]


@dataclass(frozen=True)
class WatchedPlanner(Planner):
    """A planner that keeps a record of what it is asked."""

    planned: list[Json] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def plan(
        self,
        schema: Json,
        instructions: str | None = None,
        *,
        layout: Layout = Layout.JOINT,
        order: Order = Order.RUBRIC_FIRST,
        rotation: int = 0,
    ) -> Plan:
        self.planned.append(schema)
        return super().plan(schema, instructions, layout=layout, order=order, rotation=rotation)

    def prompt(self, plan: Plan, state_text: str) -> tuple[int, ...]:
        self.threads.append(threading.get_ident())
        return super().prompt(plan, state_text)


@pytest.fixture
def watched(planner: Planner) -> WatchedPlanner:
    """The session's planner, watched."""
    return watch(planner)


def watch(planner: Planner) -> WatchedPlanner:
    """The same planner, watched."""
    return WatchedPlanner(**{one.name: getattr(planner, one.name) for one in fields(planner)})


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
        plans=Plans(watched, 3),
        model=ServedModel(name="m", fingerprint="sha256:f"),
        defaults=Defaults(entropy_threshold=0.3, max_reads=1, deadline_seconds=5.0),
        admission=admission,
        lifecycle=lifecycle,
        metrics=metrics,
    )


def asking(**changed: Any) -> DecisionRequest:
    """A request of one yes-or-no question unless told."""
    asked = {name: changed.pop(name) for name in ("instructions", "layout", "order") if name in changed}
    plan_request = PlanRequest(rubric=changed.pop("rubric", rubric(refill=REFILL)), **asked)
    return DecisionRequest(**{"state": "Hello.", "asked": plan_request, **changed})


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
    assert (request.prompt_token_ids, (branch.canvas_token_ids,)) == (read.prompt_token_ids, read.canvases)
    assert (branch.suffix_token_ids, request.is_constrained, request.cache_salt) == ((), True, None)
    assert [slot.position for slot in branch.canvas_slots] == list(plan.branches[0].canvas.slots)
    assert [slot.label_token_ids for slot in branch.canvas_slots] == [
        tuple(label.token_id for label in labels) for labels in plan.labels
    ]


@pytest.mark.parametrize(("layout", "order"), WAYS)
async def test_layouts_are_one_request(
    service: DecisionService, fake: FakeEngine, planner: Planner, layout: Layout, order: Order
) -> None:
    """Every branch of the plan with its suffix and its noise, in order, behind one prompt, in one engine step."""
    asked = rubric(topic=TOPIC, symptoms=SYMPTOMS, refill=REFILL)
    made = await service.decide(asking(rubric=asked, layout=layout, order=order, seed=7))
    plan = planner.plan(asked, layout=layout, order=order)
    read = planner.seed_read(plan, "Hello.", 7)
    (request,) = fake.requests
    assert request.prompt_token_ids == read.prompt_token_ids
    assert [(one.suffix_token_ids, one.canvas_token_ids) for one in request.branches] == [
        (branch.suffix_token_ids, canvas) for branch, canvas in zip(plan.branches, read.canvases, strict=True)
    ]
    assert [len(one.canvas_slots) for one in request.branches] == ([5] if layout is Layout.JOINT else [1, 3, 1])
    assert len(made.results[0].engine_steps) == 1
    assert [len(answer.reading.probabilities) for answer in made.answers] == [4, 3, 2]


@pytest.mark.parametrize("layout", Layout)
async def test_what_a_branch_says_is_its_questions(service: DecisionService, fake: FakeEngine, layout: Layout) -> None:
    """Whichever branch a slot is read in: each answer rests on its own slots, each option on its own label."""
    slots: list[CanvasSlot] = []

    def told(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        """The second label of the first slot, the first of the next, the second of the one after it, and so on."""
        slots.append(slot)
        return tuple(-0.1 if i == len(slots) % 2 else -5.0 for i in range(len(slot.label_token_ids)))

    fake.logprobs = told
    made = await service.decide(asking(rubric=rubric(topic=TOPIC, symptoms=SYMPTOMS, refill=REFILL), layout=layout))
    assert made.value == {"topic": "symptoms", "symptoms": ["pain", "cough"], "refill": False}
    assert len(slots) == 5


async def test_what_comes_back(service: DecisionService, fake: FakeEngine) -> None:
    """Each question's own logprobs, normalised; value, outcome, seed, the read it rests on."""
    fake.logprobs = shares(0.05, 0.8, 0.05, 0.1)
    made = await service.decide(asking(rubric=rubric(topic=TOPIC, refill=REFILL), seed=7))
    assert made.value == {"topic": "symptoms", "refill": False}
    first, second = made.answers
    assert first.reading.probabilities == pytest.approx((0.05, 0.8, 0.05, 0.1))
    assert second.reading.probabilities == pytest.approx((0.05 / 0.85, 0.8 / 0.85))
    assert (made.seeds, made.results[0].canvas_tokens, len(made.results[0].engine_steps)) == ((7,), 10, 1)
    assert made.model == ServedModel(name="m", fingerprint="sha256:f")
    assert made.total_seconds >= 0


@pytest.fixture
def wide_service(
    fake: FakeEngine, lifecycle: Lifecycle, admission: Admission, metrics: Metrics
) -> tuple[DecisionService, Planner]:
    """A service whose tokenizer has 255 labels, and its planner."""
    planner = toy_planner(canvas_length=64)
    service = DecisionService(
        engine=fake,
        plans=Plans(planner, 3),
        model=ServedModel(name="m", fingerprint="sha256:f"),
        defaults=Defaults(entropy_threshold=0.3, max_reads=1, deadline_seconds=5.0),
        admission=admission,
        lifecycle=lifecycle,
        metrics=metrics,
    )
    return service, planner


def choice_of(count: int) -> dict[str, Any]:
    """A question of that many options."""
    return {"enum": list(range(count))}


@pytest.mark.parametrize(("options", "branches"), [(128, 1), (129, 2), (255, 2)])
@pytest.mark.parametrize("layout", Layout)
async def test_reads_are_constrained_unless_in_parts(
    wide_service: tuple[DecisionService, Planner], fake: FakeEngine, options: int, branches: int, layout: Layout
) -> None:
    """S11: vLLM normalises constrained logprobs over the labels that travel together, which parts do not."""
    service, _ = wide_service
    await service.decide(asking(rubric=rubric(a=choice_of(options)), layout=layout))
    (request,) = fake.requests
    assert (request.is_constrained, len(request.branches)) == (branches == 1, branches)


async def test_parts_are_one_distribution(wide_service: tuple[DecisionService, Planner], fake: FakeEngine) -> None:
    """Each option has the share it would have in one read of all; questions beside it are whole as well."""
    service, planner = wide_service
    asked = rubric(before=REFILL, many=choice_of(255), after=TOPIC)
    made = await service.decide(asking(rubric=asked, seed=3))
    plan = planner.plan(asked)
    (request,) = set(fake.requests)
    first, second = request.branches
    assert first.canvas_token_ids == second.canvas_token_ids
    for answer, labels, slot in zip(made.answers, plan.labels, first.canvas_slots, strict=True):
        whole = CanvasSlot(position=slot.position, label_token_ids=tuple(label.token_id for label in labels))
        logprobs = hashed_logprobs(replace(request, is_constrained=True), first, whole)
        assert answer.reading.probabilities == pytest.approx([math.exp(logprob) for logprob in logprobs])
    assert [len(labels) for labels in plan.labels] == [2, 255, 4]
    assert {len(branch.label_token_ids) for branch in request.branches} == {MAX_LABELS_PER_READ, 127}


@given(layouts(), orders(), questions())
def test_every_plan_is_a_request_an_engine_takes(layout: Layout, order: Order, asked: list[dict[str, Any]]) -> None:
    """S11: no branch breaks the contract's rules, which it checks as it is made; constrained wherever it can be."""
    planner = toy_planner()
    plan = planner.plan(rubric_of(asked), layout=layout, order=order)
    request = read_request(plan, planner.seed_read(plan, "Hello.", 1))
    assert len(request.branches) == len(plan.branches)
    most = max(len(question.slot_options) for question in plan.questions)
    assert request.is_constrained is (most <= MAX_LABELS_PER_READ)


CONDITIONAL = {
    **rubric(refill=REFILL, share={"type": "number", "minimum": 0, "maximum": 1}, symptoms=SYMPTOMS),
    "required": ["refill", "share", "symptoms"],
    "if": {"properties": {"refill": {"const": True}}, "required": ["refill"]},
    "then": {"properties": {"topic": TOPIC}, "required": ["topic"]},
}


def answering(*shares_of_slots: tuple[float, ...]) -> Logprobs:
    """A script for the fake: these probabilities at the slots of a canvas, in order."""

    def told(_request: ReadRequest, branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        return tuple(map(math.log, shares_of_slots[branch.canvas_slots.index(slot)]))

    return told


SURE_OF_SYMPTOMS = ((0.99, 0.01), (0.01, 0.99), (0.98, 0.02))
UNSURE = (0.25, 0.25, 0.25, 0.25)


@dataclass(frozen=True)
class ConditionCase:
    id: str
    refill: tuple[float, float]
    value: dict[str, Any]
    outcomes: list[Outcome]
    outcome: Outcome


DECIDED, UNCERTAIN, SKIPPED = Outcome.DECIDED, Outcome.UNCERTAIN, Outcome.SKIPPED
CONDITIONS = (
    ConditionCase(
        "holds",
        (0.99, 0.01),
        {"refill": True, "share": pytest.approx(0.97), "symptoms": ["pain", "cough"], "topic": "billing"},
        [DECIDED, DECIDED, DECIDED, UNCERTAIN],
        UNCERTAIN,
    ),
    ConditionCase(
        "does not hold",
        (0.01, 0.99),
        {"refill": False, "share": pytest.approx(0.97), "symptoms": ["pain", "cough"]},
        [DECIDED, DECIDED, DECIDED, SKIPPED],
        DECIDED,
    ),
)


@pytest.mark.parametrize("case", CONDITIONS, ids=lambda case: case.id)
async def test_conditions(case: ConditionCase, service: DecisionService, fake: FakeEngine, metrics: Metrics) -> None:
    """What is skipped is in no decision and makes none uncertain, though it was read; probabilities and lists are."""
    fake.logprobs = answering(case.refill, (0.97, 0.03), *SURE_OF_SYMPTOMS, UNSURE)
    made = await service.decide(asking(rubric=CONDITIONAL))
    assert made.value == case.value
    assert [answer.outcome for answer in made.answers] == case.outcomes
    assert made.outcome is case.outcome
    assert made.stop_reason is (StopReason.ENTROPY if case.outcome is DECIDED else StopReason.MAX_READS)
    assert made.answers[-1].reading.probabilities == pytest.approx(UNSURE)
    assert metrics.registry.get_sample_value("decide_outcomes_total", {"outcome": case.outcome.value}) == 1


@dataclass(frozen=True)
class ThresholdCase:
    id: str
    asked: float | None
    outcome: Outcome
    stop_reason: StopReason
    likelier: float = 0.9


# The entropy of 0.9 and 0.1 is 0.469, that of 0.99 and 0.01 is 0.081.
THRESHOLDS = (
    ThresholdCase("the server's", None, Outcome.UNCERTAIN, StopReason.MAX_READS),
    ThresholdCase("below", 0.46, Outcome.UNCERTAIN, StopReason.MAX_READS),
    ThresholdCase("above", 0.47, Outcome.DECIDED, StopReason.ENTROPY),
    ThresholdCase("the server's, below it", None, Outcome.DECIDED, StopReason.ENTROPY, likelier=0.99),
    ThresholdCase("zero is not none", 0.0, Outcome.UNCERTAIN, StopReason.MAX_READS, likelier=0.99),
)


@pytest.mark.parametrize("case", THRESHOLDS, ids=lambda case: case.id)
async def test_the_threshold(case: ThresholdCase, service: DecisionService, fake: FakeEngine, metrics: Metrics) -> None:
    """The request's if it names one; whether reading stopped because all is decided or because it was read once."""
    fake.logprobs = shares(case.likelier, 1 - case.likelier)
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
    share = {"type": "number", "minimum": 0, "maximum": 1}
    await service.decide(asking(rubric=rubric(a=REFILL, b=PAIN, c=PAIN, d=SYMPTOMS, e=share, f=TOPIC)))
    value = metrics.registry.get_sample_value
    assert value("decide_reads_total", {"path": "fused"}) == 1
    assert value("decide_reads_total", {"path": "two_step"}) == 0
    assert value("decide_engine_steps_total") == 1
    assert value("decide_reads_per_decision_sum") == 1
    assert value("decide_entropy_count", {"kind": "boolean"}) == 1
    assert value("decide_entropy_count", {"kind": "score"}) == 2
    for kind in ("selection", "probability", "choice"):
        assert value("decide_entropy_count", {"kind": kind}) == 1


@pytest.mark.parametrize("layout", Layout)
async def test_every_canvas_is_a_read(service: DecisionService, metrics: Metrics, layout: Layout) -> None:
    """Split and isolated questions are a read each, in one engine step: one round."""
    await service.decide(asking(rubric=rubric(a=REFILL, b=PAIN, c=TOPIC), layout=layout))
    value = metrics.registry.get_sample_value
    assert value("decide_reads_total", {"path": "fused"}) == (1 if layout is Layout.JOINT else 3)
    assert value("decide_engine_steps_total") == 1


async def test_a_decision_on_the_two_step_path(service: DecisionService, fake: FakeEngine, metrics: Metrics) -> None:
    """It costs two engine steps, is counted as such, and says the same."""
    fused = await service.decide(asking())
    fake.settings = replace(fake.settings, fused_reads=False)
    made = await service.decide(asking())
    assert without_time(made) == without_time(fused)
    assert (len(fused.results[0].engine_steps), len(made.results[0].engine_steps)) == (1, 2)
    value = metrics.registry.get_sample_value
    assert value("decide_reads_total", {"path": "fused"}) == value("decide_reads_total", {"path": "two_step"}) == 1
    assert value("decide_engine_steps_total") == 3


def without_time(made: Decision) -> dict[str, Any]:
    """A decision without what may differ between two equal requests."""
    return {
        "value": made.value,
        "answers": made.answers,
        "seed": made.seeds,
        "logprobs": made.results[0].branch_logprobs,
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
    for other in (
        asking(seed=1),
        asking(state="Bye."),
        asking(instructions="Be strict."),
        asking(order=Order.STATE_FIRST),
        asking(layout=Layout.ISOLATED),
    ):
        assert without_time(await service.decide(other)) != without_time(first)


async def test_a_rubric_is_compiled_once(service: DecisionService, watched: WatchedPlanner) -> None:
    """Per rubric, instructions, layout and order, whatever the state, the seed, the threshold and the deadline."""
    others: tuple[dict[str, Any], ...] = (
        {},
        {"instructions": "i"},
        {"rubric": rubric(refill={**REFILL, "title": "Another"})},
        {"layout": Layout.SPLIT},
        {"order": Order.STATE_FIRST},
        {"layout": Layout.SPLIT, "order": Order.STATE_FIRST},
    )
    for count, other in enumerate(others, start=1):
        for more in ({}, {"state": "Bye."}, {"seed": 3}, {"entropy_threshold": 0.9}, {"deadline_seconds": 4.0}):
            await service.decide(asking(**other, **more))
        assert len(watched.planned) == count


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
    for state in ("a" * INLINE_SIZE, "a" * (INLINE_SIZE + 1)):
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
    await until(lambda: len(fake.requests) == 2)
    with pytest.raises(Overloaded):
        await service.decide(asking())
    assert len(watched.threads) == len(fake.requests) == 2
    fake.gate.set()
    await asyncio.gather(*admitted)
    assert await service.decide(asking())


async def test_tokens_under_way_are_bounded(
    service: DecisionService, admission: Admission, fake: FakeEngine, watched: WatchedPlanner
) -> None:
    """R2: what a read has, prompt and canvases, is counted; one too many costs the engine nothing, and one that is
    larger than all there is is taken alone."""
    await service.decide(asking())
    (once,) = fake.requests
    tokens = len(once.prompt_token_ids) + len(once.branches[0].canvas_token_ids)
    fake.gate.clear()
    admission.tokens.limit = 2 * tokens - 1
    admitted = asyncio.create_task(service.decide(asking()))
    await until(lambda: len(fake.requests) == 2)
    assert admission.tokens.taken == tokens
    with pytest.raises(Overloaded):
        await service.decide(asking())
    assert len(fake.requests) == 2
    tokenised = len(watched.threads)
    admission.tokens.limit = tokens
    with pytest.raises(Overloaded):
        await service.decide(asking())
    assert len(watched.threads) == tokenised  # nothing is left for anybody, which is known before
    fake.gate.set()
    await admitted
    assert admission.tokens.taken == 0
    admission.tokens.limit = 1
    assert await service.decide(asking())


async def test_the_services_own_decision_is_made_whatever_is_under_way(
    service: DecisionService, admission: Admission
) -> None:
    """R15: an engine that is busy is not one that does not answer."""
    with admission.permit(), admission.permit(), admission.tokens.account() as account:
        account.take(admission.tokens.limit)
        assert await service.decide_unguarded(asking())


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
    assert await service.decide(asking())  # compiled from here on, so that the deadline meets the read
    fake.requests.clear()
    fake.gate.clear()
    async with asyncio.timeout(30):
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
    service._defaults = Defaults(entropy_threshold=0.3, max_reads=1, deadline_seconds=server)
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
    await until(lambda: bool(fake.requests))
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


async def test_an_engine_that_was_taken_down_did_not_fail(
    service: DecisionService, fake: FakeEngine, lifecycle: Lifecycle
) -> None:
    """A request that is under way when the service stops ends with it; the service stays stopped."""
    fake.gate.clear()
    asked = asyncio.create_task(service.decide(asking()))
    await until(lambda: bool(fake.requests))
    for phase in (Phase.DRAINING, Phase.STOPPED):
        lifecycle.enter(phase)
    await fake.close()
    fake.gate.set()
    with pytest.raises(EngineDied):
        await asked
    assert lifecycle.phase is Phase.STOPPED


async def test_a_prompt_that_is_too_long(service: DecisionService, fake: FakeEngine) -> None:
    """Never reaches the engine."""
    with pytest.raises(PromptTooLong):
        await service.decide(asking(state="word " * 5000))
    assert not fake.requests


async def test_a_decision_is_checked_before_it_is_sent(
    service: DecisionService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision is checked against its rubric; one that does not satisfy it is a bug."""
    monkeypatch.setattr("app.canvas.decision.build_decision", lambda *_: {"refill": "maybe"})
    with pytest.raises(InternalError, match="this is a bug"):
        await service.decide(asking())


async def test_ids_of_reads_and_decisions_are_ours(service: DecisionService, fake: FakeEngine) -> None:
    """S4, S5: unique, of a fixed form, none of the caller's text in them."""
    made = [await service.decide(asking()) for _ in range(3)]
    names = [one.id for one in made] + [request.request_id for request in fake.requests]
    assert len(set(names)) == 6
    assert all(name.split("_")[1].isalnum() and len(name.split("_")[1]) == 24 for name in names)
