"""The one way from a request to a decision: rubric, plan, prompt, read, answers.

The only module that knows both the canvas and the engine's contract.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from app.admission import Account, Admission, Budget
from app.canvas.decision import Answer, Outcome, overall
from app.canvas.json import Json
from app.canvas.noise import is_sampled, seed_of
from app.canvas.plan import LineLogprobs, Plan, SeededRead
from app.canvas.policy import Inquiry, Policy, Round, StopReason, check_max_reads
from app.canvas.question import Kind
from app.errors import DeadlineExceeded, InternalError, SchemaRejected
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from app.offload import beside_the_loop
from app.plans import PlanRequest, Plans
from engine.protocol import Branch, CanvasSlot, Engine, EngineDied, ReadRequest, ReadResult

T = TypeVar("T")

# To decide takes about as long per node of a rubric as to tokenise so many characters.
CHARS_PER_NODE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The server's policy where a request names none, and its bounds.

    Attributes:
        max_reads: no request may ask for more.
        label_mass_share: of decisions, those whose first read also tells how likely anything but a label was.
        temperatures: by kind of question.
    """

    entropy_threshold: float
    max_reads: int
    deadline_seconds: float
    label_mass_share: float = 0.0
    temperatures: Mapping[Kind, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What answers are signed with."""

    name: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """What is to be decided. Where the policy is None the server's default holds."""

    state: Json
    asked: PlanRequest
    entropy_threshold: float | None = None
    max_reads: int | None = None
    rotates_options: bool = False
    seed: int | None = None
    deadline_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided, how sure it is, and what it cost.

    Attributes:
        value: an instance of the rubric.
        answers: one per question, in the rubric's order.
        policy: by which it was read.
        seeds: of each read.
        rounds: that they were made in.
        results: what the engine was asked, and what that cost; also of a round that was not finished in time.
        total_seconds: wall time from the request to this object.
    """

    id: str
    model: ServedModel
    outcome: Literal[Outcome.DECIDED, Outcome.UNCERTAIN]
    value: dict[str, Json]
    answers: tuple[Answer, ...]
    policy: Policy
    stop_reason: StopReason
    seeds: tuple[int, ...]
    rounds: int
    results: tuple[ReadResult, ...]
    total_seconds: float

    @property
    def size(self) -> int:
        """About how much there is to write and to count, in characters."""
        options = sum(len(answer.question.options) for answer in self.answers)
        return options * len(self.seeds) * CHARS_PER_NODE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A state laid out under a plan, for whoever has this salt."""

    plan: Plan
    prompt_token_ids: tuple[int, ...]
    cache_salt: str | None

    @property
    def tokens(self) -> int:
        """That one read of all of it has."""
        return len(self.prompt_token_ids) + sum(branch.tokens for branch in self.plan.branches)

    def tokens_of(self, made: Round) -> int:
        """That a round of reads has, which share the prompt."""
        branches = sum(branch.tokens for branch in self.plan.branches_of(made.questions))
        return len(self.prompt_token_ids) + branches * len(made.seeds)


@dataclass(slots=True)
class _Results:
    """What the engine was asked for one decision, each counted as it comes: it was computed, whatever becomes of it."""

    count: Callable[[ReadResult], None]
    made: list[ReadResult] = field(default_factory=list)

    def add(self, result: ReadResult) -> None:
        """One more."""
        self.count(result)
        self.made.append(result)


class DecisionService:
    """Decides. One instance per application, made when the engine is up."""

    def __init__(
        self,
        *,
        engine: Engine,
        plans: Plans,
        model: ServedModel,
        defaults: Defaults,
        admission: Admission,
        lifecycle: Lifecycle,
        metrics: Metrics,
    ) -> None:
        self._engine = engine
        self._plans = plans
        self._model = model
        self._defaults = defaults
        self._admission = admission
        self._lifecycle = lifecycle
        self._metrics = metrics

    async def decide(self, request: DecisionRequest) -> Decision:
        """Decide, within the deadline; raises as `answer` does."""
        return await self.answer(request, lambda decision: decision)

    async def answer(self, request: DecisionRequest, write: Callable[[Decision], T]) -> T:
        """What is written of a decision that is made within the deadline. The request is under way until it is written.

        Raises:
            SchemaRejected: it asks for more reads than are served.
            RubricRejected, PromptTooLong, PlanTooLarge: the request cannot be laid out.
            NotServing, Overloaded, QuotaExceeded, DeadlineExceeded: not now.
            EngineDied, ReadFailed, NonFiniteLogprobs: the engine failed.
            InternalError: a bug of ours.
        """
        self._lifecycle.require_ready()
        permit, tokens = self._admission.permit(request.asked.tenant), self._admission.tokens
        with permit, tokens.account() as account, self._metrics.inflight.track_inprogress():
            deadline, count = self._deadline_seconds(request), self._metrics.observe_read
            try:
                decision = await self._decide(request, deadline, count, account)
            except EngineDied:
                # Now, not when the engine is next looked at: `/health` says no whenever this does.
                if self._lifecycle.phase is not Phase.STOPPED:  # then it was taken down on purpose
                    self._lifecycle.enter(Phase.FAILED)
                raise
            self._metrics.observe_decision(
                reads=len(decision.seeds),
                answers=decision.answers,
                outcome=decision.outcome,
                stop_reason=decision.stop_reason,
            )
            return await beside_the_loop(decision.size, write, decision)

    async def decide_unguarded(self, request: DecisionRequest) -> Decision:
        """Decide without admission, deadline or count: the start-up decision, made before anything else is served."""
        with Budget().account() as account:
            return await self._decide(request, None, lambda _: None, account)

    async def _decide(
        self,
        request: DecisionRequest,
        deadline_seconds: float | None,
        count: Callable[[ReadResult], None],
        account: Account,
    ) -> Decision:
        """Decide: from the first read, which has to be there by the deadline, and from what else is read until then."""
        started = time.perf_counter()
        self._check(request)
        results = _Results(count)
        ends = started + _given(deadline_seconds, math.inf)
        try:
            async with asyncio.timeout(deadline_seconds):
                case = await self._lay_out(request.asked, request.state)
                account.take(case.tokens)
                inquiry = await self._read_first(request, case, results, ends)
        except TimeoutError:
            raise DeadlineExceeded from None
        inquiry, stopped = await self._read_on(request, case, inquiry, results, ends, account)
        size = case.plan.rubric.nodes * CHARS_PER_NODE
        return await beside_the_loop(size, self._conclude, case.plan, inquiry, stopped, results, started)

    async def _read_first(self, request: DecisionRequest, case: _Case, results: _Results, ends: float) -> Inquiry:
        seed = seed_of(case.prompt_token_ids) if request.seed is None else request.seed
        inquiry = Inquiry(rubric=case.plan.rubric, policy=self._policy(request), seed=seed)
        tells_mass = is_sampled(seed, self._defaults.label_mass_share)
        return await self._read(case, inquiry, results, ends, tells_mass=tells_mass)

    async def _read_on(
        self,
        request: DecisionRequest,
        first: _Case,
        inquiry: Inquiry,
        results: _Results,
        ends: float,
        account: Account,
    ) -> tuple[Inquiry, StopReason]:
        """The rounds behind the first, and why there are no more. What was read before the deadline is an answer."""
        with suppress(TimeoutError):
            async with asyncio.timeout(None if math.isinf(ends) else ends - time.perf_counter()):
                while isinstance(inquiry.next, Round):
                    rotation = inquiry.next.rotation % first.plan.orders
                    asked = replace(request.asked, rotation=rotation)
                    case = await self._lay_out(asked, request.state) if rotation else first
                    account.hold(case.tokens_of(inquiry.next))
                    inquiry = await self._read(case, inquiry, results, ends)
        return inquiry, StopReason.DEADLINE if isinstance(inquiry.next, Round) else inquiry.next

    async def _lay_out(self, asked: PlanRequest, state: Json) -> _Case:
        plan = await self._plans.plan(asked)
        prompt = await self._plans.prompt(plan, state)
        return _Case(plan=plan, prompt_token_ids=prompt, cache_salt=asked.tenant.cache_salt)

    async def _read(
        self, case: _Case, inquiry: Inquiry, results: _Results, ends: float, *, tells_mass: bool = False
    ) -> Inquiry:
        """Make the next round of reads; what that costs joins the other results."""
        started, plan, made = time.perf_counter(), case.plan, inquiry.next
        assert isinstance(made, Round), "nothing is left to read; this is a bug"
        size = plan.rubric.nodes * CHARS_PER_NODE * (len(inquiry.seeds) + len(made.seeds))
        requests = await beside_the_loop(size, self._requests, case, made, tells_mass=tells_mass)
        reads: list[dict[int, LineLogprobs]] = []
        for seeded, asked in requests:
            result = await self._engine.read(asked)
            results.add(result)
            reads += (plan.collect(*drawn) for drawn in seeded.by_seed(result.branch_logprobs))

        def observe() -> Inquiry:
            now = time.perf_counter()
            known = inquiry.observe(
                reads,
                round_seconds=now - started,
                remaining_seconds=ends - now,
                is_over_vocabulary=not requests[0][1].is_constrained,
            )
            _ = known.next  # decides, which takes as long as the rubric is large
            return known

        return await beside_the_loop(size, observe)

    def _requests(self, case: _Case, made: Round, *, tells_mass: bool) -> list[tuple[SeededRead, ReadRequest]]:
        """A round as requests to the engine: one, unless it is larger than one read of the largest rubric may be."""
        plan, planner = case.plan, self._plans.planner
        branches = plan.branches_of(made.questions)
        together = max(1, planner.max_branch_tokens // sum(branch.tokens for branch in branches))
        portions = (made.seeds[first : first + together] for first in range(0, len(made.seeds), together))
        drawn = [planner.draw(branches, case.prompt_token_ids, seeds) for seeds in portions]
        salt = case.cache_salt
        return [(seeded, read_request(plan, seeded, tells_mass=tells_mass, cache_salt=salt)) for seeded in drawn]

    def _check(self, request: DecisionRequest) -> None:
        if problems := check_max_reads(request.max_reads, self._defaults.max_reads):
            raise SchemaRejected(*problems)

    def _policy(self, request: DecisionRequest) -> Policy:
        defaults = self._defaults
        return Policy(
            entropy_threshold=_given(request.entropy_threshold, defaults.entropy_threshold),
            max_reads=_given(request.max_reads, defaults.max_reads),
            rotates_options=request.rotates_options,
            temperatures=defaults.temperatures,
        )

    def _deadline_seconds(self, request: DecisionRequest) -> float:
        return min(self._defaults.deadline_seconds, _given(request.deadline_seconds, math.inf))

    def _conclude(
        self, plan: Plan, inquiry: Inquiry, stop_reason: StopReason, results: _Results, started: float
    ) -> Decision:
        if not plan.validator.is_valid(inquiry.decision):
            raise InternalError("a decision does not satisfy its rubric; this is a bug")
        return Decision(
            id=f"dec_{secrets.token_hex(12)}",
            model=self._model,
            outcome=overall(inquiry.answers),
            value=inquiry.decision,
            answers=inquiry.answers,
            policy=inquiry.policy,
            stop_reason=stop_reason,
            seeds=inquiry.seeds,
            rounds=inquiry.rounds,
            results=tuple(results.made),
            total_seconds=time.perf_counter() - started,
        )


def read_request(
    plan: Plan, seeded: SeededRead, *, tells_mass: bool = False, cache_salt: str | None = None
) -> ReadRequest:
    """What the engine is asked: branches of a plan behind one prompt."""
    branches = (
        Branch(
            suffix_token_ids=branch.suffix_token_ids,
            canvas_token_ids=canvas,
            canvas_slots=tuple(
                CanvasSlot(position=slot.position, label_token_ids=slot.label_token_ids) for slot in branch.slots
            ),
        )
        for branch, canvas in zip(seeded.branches, seeded.canvases, strict=True)
    )
    return ReadRequest(
        request_id=f"read_{secrets.token_hex(12)}",
        prompt_token_ids=seeded.prompt_token_ids,
        branches=tuple(branches),
        # Constrained logprobs are relative to the labels that travel together: parts of one slot could not be compared,
        # and labels always have all the mass.
        is_constrained=not (plan.is_in_parts or tells_mass),
        cache_salt=cache_salt,
    )


def _given(value: T | None, default: T) -> T:
    return default if value is None else value
