"""Reading again: what the service asks the engine for, round by round, and what it says of it."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import httpx
import pytest

from app.admission import Admission
from app.canvas.decision import Outcome
from app.canvas.noise import read_seed
from app.canvas.plan import Layout, Planner
from app.canvas.policy import StopReason
from app.canvas.question import Kind
from app.decisions import Decision, DecisionRequest, DecisionService, Defaults, ServedModel
from app.errors import DeadlineExceeded, SchemaRejected
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from app.plans import PlanRequest, Plans
from app.settings import Settings
from engine.fake import FakeEngine, hashed_logprobs
from engine.protocol import Branch, CanvasSlot, ReadFailed, ReadRequest, ReadResult
from tests.app.canvas.plans import toy_planner
from tests.app.service import request_body
from tests.cases import PAIN, REFILL, TOPIC, rubric

DEFAULTS = Defaults(entropy_threshold=0.3, max_reads=8, deadline_seconds=60.0)
MakeService = Callable[..., DecisionService]


@pytest.fixture
def settings() -> Settings:
    """The session's, but with the service's own budget of reads."""
    return Settings(engine="fake", max_inflight=4, deadline_seconds=20.0)


@pytest.fixture
def make_service(fake: FakeEngine, planner: Planner) -> MakeService:
    """Makes services over the fake engine with other defaults."""

    def make(**changed: Any) -> DecisionService:
        lifecycle = Lifecycle()
        lifecycle.enter(Phase.READY)
        return DecisionService(
            engine=fake,
            plans=Plans(planner, 10),
            model=ServedModel(name="m", fingerprint="sha256:f"),
            defaults=replace(DEFAULTS, **changed),
            admission=Admission(2),
            lifecycle=lifecycle,
            metrics=Metrics(),
        )

    return make


def asking(schema: dict[str, Any] | None = None, **changed: Any) -> DecisionRequest:
    """A request of one yes-or-no question unless told."""
    asked = {name: changed.pop(name) for name in ("layout", "order") if name in changed}
    plan_request = PlanRequest(rubric=rubric(refill=REFILL) if schema is None else schema, **asked)
    return DecisionRequest(state="Hello.", asked=plan_request, **{"seed": 42, **changed})


def torn(random: Random) -> Callable[[ReadRequest, Branch, CanvasSlot], tuple[float, ...]]:
    """A script for the fake: every read says something else of every slot."""

    def told(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        shares = [random.uniform(0.2, 1.0) for _ in slot.label_token_ids]
        return tuple(math.log(share / sum(shares)) for share in shares)

    return told


def sure_of(question: int) -> Callable[[ReadRequest, Branch, CanvasSlot], tuple[float, ...]]:
    """A script for the fake in split and isolated layouts: sure of one question, torn about the others."""
    random = Random(1)

    def told(request: ReadRequest, branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        is_asked = len(request.branches) > question and request.branches[question] is branch
        if is_asked and len(request.branches) == 3:
            return (-0.001, *[-9.0] * (len(slot.label_token_ids) - 1))
        return torn(random)(request, branch, slot)

    return told


@pytest.mark.parametrize(("max_reads", "sizes"), [(1, [1]), (2, [1, 1]), (4, [1, 1, 2]), (8, [1, 1, 2, 4])])
async def test_a_round_is_one_request(
    make_service: MakeService, fake: FakeEngine, planner: Planner, max_reads: int, sizes: list[int]
) -> None:
    """1, 2, 4 and 8 reads in all: a branch per seed behind the same prompt, and an engine step per round."""
    fake.logprobs = torn(Random(0))
    made = await make_service().decide(asking(entropy_threshold=0.0, max_reads=max_reads))
    assert [len(request.branches) for request in fake.requests] == sizes
    assert made.seeds == tuple(read_seed(42, number) for number in range(max_reads))
    (prompt,) = {request.prompt_token_ids for request in fake.requests}
    plan = planner.plan(rubric(refill=REFILL))
    assert prompt == planner.prompt(plan, "Hello.")
    canvases = [branch.canvas_token_ids for request in fake.requests for branch in request.branches]
    assert canvases == [planner.seed_read(plan, "Hello.", seed).canvases[0] for seed in made.seeds]
    assert sum(len(result.engine_steps) for result in made.results) == len(sizes)
    assert (made.stop_reason, made.answers[0].outcome) == (StopReason.MAX_READS, Outcome.UNCERTAIN)


async def test_the_servers_budget_is_the_default(make_service: MakeService, fake: FakeEngine) -> None:
    """And the most that a request may ask for."""
    fake.logprobs = torn(Random(0))
    assert len((await make_service(max_reads=2).decide(asking(entropy_threshold=0.0))).seeds) == 2
    with pytest.raises(SchemaRejected) as refusal:
        await make_service(max_reads=2).decide(asking(max_reads=3))
    (problem,) = refusal.value.problems
    assert (problem.pointer, problem.code) == ("/policy/max_reads", "less_than_equal")
    assert "2" in problem.message


async def test_pooled_probabilities_are_the_mean(make_service: MakeService, fake: FakeEngine) -> None:
    """Of what the engine said of each read."""
    said: list[list[float]] = []
    script = torn(Random(0))

    def told(request: ReadRequest, branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        logprobs = script(request, branch, slot)
        said.append([math.exp(logprob) for logprob in logprobs])
        return logprobs

    fake.logprobs = told
    made = await make_service().decide(asking(rubric(topic=TOPIC), entropy_threshold=0.0, max_reads=4))
    pooled = [sum(column) / 4 for column in zip(*said, strict=True)]
    assert made.answers[0].reading.probabilities == pytest.approx(pooled)
    assert len(made.answers[0].pool.reads) == 4


def noisy(random: Random) -> Callable[[ReadRequest, Branch, CanvasSlot], tuple[float, ...]]:
    """A script for the fake: logits of two options, disturbed anew in every read."""

    def told(_request: ReadRequest, _branch: Branch, _slot: CanvasSlot) -> tuple[float, ...]:
        yes = 1 / (1 + math.exp(-0.4 - random.gauss(0, 0.8)))
        return math.log(yes), math.log(1 - yes)

    return told


async def test_what_is_said_of_the_error_is_true(make_service: MakeService, fake: FakeEngine) -> None:
    """Against a Monte-Carlo reference of the noise: decisions of 2 reads are off twice as far as those of 8, and the
    standard error that is reported is how far they are off, within a tenth."""
    script = noisy(Random(0))
    reads = [math.exp(script(None, None, None)[0]) for _ in range(200_000)]  # type: ignore[arg-type]
    true = sum(reads) / len(reads)
    fake.logprobs = noisy(Random(1))
    service = make_service()
    off: dict[int, float] = {}
    for max_reads, decisions in ((2, 600), (8, 1200)):
        request = asking(entropy_threshold=0.0, max_reads=max_reads)
        answers = [(await service.decide(request)).answers[0] for _ in range(decisions)]
        errors = [answer.reading.probabilities[0] - true for answer in answers]
        off[max_reads] = math.sqrt(sum(error**2 for error in errors) / decisions)
        said = math.sqrt(sum((answer.std_error or 0.0) ** 2 for answer in answers) / decisions)
        assert said == pytest.approx(off[max_reads], rel=0.1)
    assert off[2] / off[8] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("layout", [Layout.SPLIT, Layout.ISOLATED])
@pytest.mark.parametrize("sure", range(3))
async def test_what_is_settled_is_not_read_again(
    make_service: MakeService, fake: FakeEngine, layout: Layout, sure: int
) -> None:
    """In layouts in which questions are read apart: only the branches of the others, once per seed."""
    fake.logprobs = sure_of(sure)
    asked = rubric(**{name: {**REFILL, "title": f"Is it {name}?"} for name in "abc"})
    made = await make_service().decide(asking(asked, layout=layout))
    assert [len(request.branches) for request in fake.requests] == [3, 2, 4, 8]
    reads = [len(answer.pool.reads) for answer in made.answers]
    assert reads == [1 if index == sure else 8 for index in range(3)]
    once = fake.requests[0].branches[sure]
    again = [branch for request in list(fake.requests)[1:] for branch in request.branches]
    assert all(
        (branch.suffix_token_ids, branch.canvas_slots) != (once.suffix_token_ids, once.canvas_slots) for branch in again
    )


async def test_a_round_is_no_larger_than_the_largest_rubric(
    make_service: MakeService, fake: FakeEngine, planner: Planner
) -> None:
    """R2: as much as one read of a request may have behind its prompt: larger rounds are several requests in turn."""
    fake.logprobs = torn(Random(0))
    service = make_service()
    tokens = planner.plan(rubric(refill=REFILL)).branches[0].tokens
    service._plans.planner = replace(planner, max_branch_tokens=2 * tokens + 1)
    made = await service.decide(asking(entropy_threshold=0.0))
    assert [len(request.branches) for request in fake.requests] == [1, 1, 2, 2, 2]
    assert (len(made.seeds), made.rounds) == (8, 4)
    canvases = [branch.canvas_token_ids for request in fake.requests for branch in request.branches]
    plan = planner.plan(rubric(refill=REFILL))
    assert canvases == [planner.seed_read(plan, "Hello.", seed).canvases[0] for seed in made.seeds]


async def test_joint_questions_are_read_together(make_service: MakeService, fake: FakeEngine) -> None:
    """They share a canvas."""
    fake.logprobs = torn(Random(0))
    made = await make_service().decide(asking(rubric(a=REFILL, b=TOPIC), entropy_threshold=0.0))
    assert [len(branch.canvas_slots) for request in fake.requests for branch in request.branches] == [2] * 8
    assert [len(answer.pool.reads) for answer in made.answers] == [8, 8]


async def test_a_deadline_shorter_than_a_round(make_service: MakeService, fake: FakeEngine) -> None:
    """It stops ahead of the round that would not be finished, and answers from what it has."""
    fake.logprobs, fake.read_seconds = torn(Random(0)), 0.2
    made = await make_service().decide(asking(entropy_threshold=0.0, deadline_seconds=0.35))
    assert (made.stop_reason, len(made.seeds), len(fake.requests)) == (StopReason.DEADLINE, 1, 1)
    assert made.total_seconds < 0.35


async def test_a_round_that_takes_too_long_is_given_up(make_service: MakeService, fake: FakeEngine) -> None:
    """What was read before it is an answer; the engine is told to stop."""
    fake.logprobs = torn(Random(0))
    read = fake.read

    async def slower_every_time(request: ReadRequest) -> ReadResult:
        fake.read_seconds = 0.0 if not fake.requests else 60.0
        return await read(request)

    fake.read = slower_every_time  # type: ignore[method-assign]
    made = await make_service().decide(asking(entropy_threshold=0.0, deadline_seconds=0.3))
    assert (made.stop_reason, len(made.seeds)) == (StopReason.DEADLINE, 1)
    assert list(fake.aborted) == [fake.requests[1].request_id]


async def test_no_answer_in_time_is_none(make_service: MakeService, fake: FakeEngine) -> None:
    """R6: the first read has to be finished."""
    fake.read_seconds = 60.0
    with pytest.raises(DeadlineExceeded):
        await make_service().decide(asking(deadline_seconds=0.05))


async def test_orders_rotate(make_service: MakeService, fake: FakeEngine, planner: Planner) -> None:
    """Every round has a prompt of its own, in which another option comes first; the first label is always the first."""
    fake.logprobs = torn(Random(0))
    asked = rubric(topic=TOPIC)
    await make_service().decide(asking(asked, entropy_threshold=0.0, rotates_options=True))
    assert len(fake.requests) == 4
    first_label = planner.alphabet[0].token_id
    firsts = []
    for number, request in enumerate(fake.requests):
        plan = planner.plan(asked, rotation=number)
        assert request.prompt_token_ids == planner.prompt(plan, "Hello.")
        (slot,) = request.branches[0].canvas_slots
        firsts.append(slot.label_token_ids.index(first_label))
    assert firsts == [0, 1, 2, 3]


@pytest.mark.parametrize("rotates", [True, False])
async def test_an_order_bias_is_found_and_taken_out(
    make_service: MakeService, fake: FakeEngine, planner: Planner, rotates: bool
) -> None:
    """An engine that likes the first option by 0.2, whichever it is, and what it takes from all."""
    true, bias = (0.4, 0.3, 0.2, 0.1), 0.2
    first_label = planner.alphabet[0].token_id

    def biased(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        first = slot.label_token_ids.index(first_label)
        return tuple(math.log(p + bias * ((i == first) - 1 / 4)) for i, p in enumerate(true))

    fake.logprobs = biased
    request = asking(rubric(topic=TOPIC), entropy_threshold=0.0, rotates_options=rotates)
    (answer,) = (await make_service().decide(request)).answers
    if rotates:
        assert answer.reading.probabilities == pytest.approx(true, abs=0.01)
        assert answer.pool.order_disagreement == pytest.approx(bias, abs=0.01)
    else:
        assert answer.reading.probabilities[0] == pytest.approx(true[0] + 0.15)
        assert answer.pool.order_disagreement is None


@pytest.mark.parametrize("share", [0.0, 1.0])
async def test_label_mass(make_service: MakeService, fake: FakeEngine, share: float) -> None:
    """A sampled decision's first read is over the whole vocabulary, and no other; nobody else's is."""
    random = Random(0)

    def told(request: ReadRequest, branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        lost = 0.0 if request.is_constrained else math.log(0.5)
        return tuple(logprob + lost for logprob in torn(random)(request, branch, slot))

    fake.logprobs = told
    service = make_service(label_mass_share=share)
    made = await service.decide(asking(entropy_threshold=0.0, max_reads=4))
    assert [request.is_constrained for request in fake.requests] == [not share, True, True]
    assert made.answers[0].pool.label_mass == (pytest.approx(0.5) if share else None)
    counted = service._metrics.registry.get_sample_value("decide_label_mass_count", {"kind": "boolean"})
    assert counted == (1 if share else None)


async def test_temperatures_soften(make_service: MakeService, fake: FakeEngine) -> None:
    """What the calibration file says of a kind."""
    fake.logprobs = lambda _request, _branch, _slot: (math.log(0.9), math.log(0.1))
    made = await make_service(temperatures={Kind.BOOLEAN: 2.0}).decide(asking(max_reads=1))
    assert made.answers[0].reading.probability == pytest.approx(0.75)


async def test_the_same_seed_is_the_same_answer(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """Over HTTP, byte by byte, but for the id and the time; another seed is another one."""

    async def answer(seed: int) -> str:
        body = request_body(policy={"seed": seed, "entropy_threshold": 0.01})
        response = await client.post("/decide", json=body)
        assert response.json()["policy"]["reads"] > 1
        return re.sub(r'"id":"\w+"|"timing":{[^}]*}', "", response.text)

    assert fake.read_seconds == 0.0
    assert await answer(5) == await answer(5) != await answer(6)


def reads_of(made: Decision) -> int:
    """Of a decision."""
    return len(made.seeds)


async def test_what_is_counted(make_service: MakeService, fake: FakeEngine) -> None:
    """Reads of a decision, why it stopped, branches and steps of all rounds."""
    fake.logprobs = torn(Random(0))
    service = make_service()
    made = await service.decide(asking(rubric(a=REFILL, b=REFILL), entropy_threshold=0.0, layout=Layout.SPLIT))
    value = service._metrics.registry.get_sample_value
    assert reads_of(made) == 8
    assert value("decide_reads_per_decision_sum") == 8
    assert value("decide_reads_total", {"path": "fused"}) == 16
    assert value("decide_engine_steps_total") == 4
    assert value("decide_stop_reasons_total", {"reason": "max_reads"}) == 1
    assert value("decide_stop_reasons_total", {"reason": "stable"}) == 0


async def test_an_answer_that_was_read_is_given(
    make_service: MakeService, fake: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes to conclude after the deadline, and whatever holds the loop up around it."""
    fake.logprobs = torn(Random(0))
    service, read, conclude = make_service(), fake.read, DecisionService._conclude

    async def blocking(request: ReadRequest) -> ReadResult:
        if fake.requests:
            time.sleep(0.25)  # noqa: ASYNC251 - the loop is to be held up
        return await read(request)

    def slowly(*args: Any) -> Decision:
        time.sleep(0.1)
        return conclude(*args)

    fake.read = blocking  # type: ignore[method-assign]
    monkeypatch.setattr(DecisionService, "_conclude", slowly)
    made = await service.decide(asking(entropy_threshold=0.0, deadline_seconds=0.2))
    assert made.stop_reason is StopReason.DEADLINE
    assert len(made.seeds) in (1, 2)


async def test_adding_a_question_moves_no_isolated_answer(make_service: MakeService, fake: FakeEngine) -> None:
    """However often the other one is read: each stops by what was read of itself."""
    unsure = {**REFILL, "title": "Is it unsure?"}
    fake.logprobs = lambda request, branch, slot: (
        (math.log(0.65), math.log(0.35))
        if branch.suffix_token_ids == first_suffix
        else hashed_logprobs(request, branch, slot)
    )
    first_suffix: tuple[int, ...] = ()
    service = make_service(max_reads=8)
    request = asking(rubric(a=unsure), layout=Layout.ISOLATED, seed=None)
    await service.decide(request)
    first_suffix = fake.requests[0].branches[0].suffix_token_ids
    alone = await service.decide(request)
    beside = await service.decide(
        asking(rubric(a=unsure, b=TOPIC, c=PAIN), layout=Layout.ISOLATED, entropy_threshold=0.05, seed=None)
    )
    assert (len(alone.answers[0].pool.reads), alone.stop_reason) == (4, StopReason.STABLE)
    assert beside.answers[0].pool.reads == alone.answers[0].pool.reads
    assert len(beside.seeds) > 4


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("rotates", [False, True])
async def test_questions_in_parts_are_read_again(make_service: MakeService, layout: Layout, rotates: bool) -> None:
    """All parts of one, every round; what they say together is one distribution."""
    service = make_service()
    service._plans = Plans(toy_planner(canvas_length=64), 20)
    asked = rubric(many={"enum": list(range(200))}, some={"type": "array", "items": {"enum": ["x", "y"]}})
    made = await service.decide(asking(asked, layout=layout, entropy_threshold=0.0, rotates_options=rotates))
    many, some = made.answers
    assert (len(many.pool.reads), len(some.pool.reads), made.rounds) == (8, 8, 4)
    assert all(sum(distribution) == pytest.approx(1) for (distribution,) in many.pool.reads)
    assert (many.pool.order_disagreement is not None) is rotates
    assert many.pool.label_mass is not None  # parts are read over the whole vocabulary


async def test_reads_are_counted_as_they_are_made(make_service: MakeService, fake: FakeEngine) -> None:
    """Also of a decision that then fails: a read that fails in a later round fails the request."""
    fake.logprobs = torn(Random(0))
    service, read = make_service(), fake.read

    async def failing(request: ReadRequest) -> ReadResult:
        fake.read_error = ReadFailed("no") if fake.requests else None
        return await read(request)

    fake.read = failing  # type: ignore[method-assign]
    with pytest.raises(ReadFailed):
        await service.decide(asking(entropy_threshold=0.0))
    value = service._metrics.registry.get_sample_value
    assert value("decide_reads_total", {"path": "fused"}) == 1
    assert value("decide_reads_per_decision_count") == 0


async def test_orders_that_are_the_same_are_planned_once(make_service: MakeService, fake: FakeEngine) -> None:
    """Two options have two orders, however many rounds there are."""
    fake.logprobs = torn(Random(0))
    service = make_service()
    await service.decide(asking(entropy_threshold=0.0, rotates_options=True))
    assert len({request.prompt_token_ids for request in fake.requests}) == 2
    assert len(service._plans._kept) == 2
