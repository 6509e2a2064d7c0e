"""The one way from a request to a decision: rubric, plan, prompt, read, answers.

The only module that knows both the canvas and the engine's contract.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import ParamSpec, TypeVar

from cachetools import LRUCache

from app.admission import Admission
from app.canvas.decision import Answer, Outcome, answer, decision_of
from app.canvas.distribution import normalise
from app.canvas.json import Json, JsonScalar
from app.canvas.plan import Plan, Planner, SeededRead, label_token_ids
from app.canvas.prompt import state_text
from app.errors import DeadlineExceeded, InternalError
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from engine.protocol import Branch, CanvasSlot, Engine, EngineDied, ReadRequest, ReadResult

P = ParamSpec("P")
T = TypeVar("T")

# Longer texts are tokenised off the event loop, so that a long one does not hold up everybody else's answer.
INLINE_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """The server's policy where a request names none."""

    entropy_threshold: float
    deadline_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """What answers are signed with."""

    name: str
    fingerprint: str


class StopReason(StrEnum):
    """Why reading stopped."""

    ENTROPY = "entropy"
    MAX_READS = "max_reads"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRequest:
    """What is to be decided. Where the policy is None the server's default holds."""

    state: Json
    rubric: Json
    instructions: str | None = None
    entropy_threshold: float | None = None
    seed: int | None = None
    deadline_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided, how sure it is, and what it cost.

    Attributes:
        value: an instance of the rubric.
        answers: one per question, in the rubric's order.
        read: the read it rests on.
        total_seconds: wall time from the request to this object.
    """

    id: str
    model: ServedModel
    outcome: Outcome
    value: dict[str, JsonScalar]
    answers: tuple[Answer, ...]
    stop_reason: StopReason
    seed: int
    read: ReadResult
    total_seconds: float


class DecisionService:
    """Decides. One instance per application, made when the engine is up."""

    def __init__(
        self,
        *,
        engine: Engine,
        planner: Planner,
        model: ServedModel,
        defaults: Defaults,
        admission: Admission,
        lifecycle: Lifecycle,
        metrics: Metrics,
        cached_plans: int,
    ) -> None:
        self._engine = engine
        self._planner = planner
        self._model = model
        self._defaults = defaults
        self._admission = admission
        self._lifecycle = lifecycle
        self._metrics = metrics
        # Keyed by digest: the cache holds no key that could be read.
        self._plans: LRUCache[bytes, Plan] = LRUCache(cached_plans)

    async def decide(self, request: DecisionRequest) -> Decision:
        """Decide, within the deadline.

        Raises:
            RubricRejected, PromptTooLong: the request cannot be laid out.
            NotServing, Overloaded, DeadlineExceeded: not now.
            EngineDied, ReadFailed, NonFiniteLogprobs: the engine failed.
        """
        self._lifecycle.require_ready()
        with self._admission.permit(), self._metrics.inflight.track_inprogress():
            try:
                async with asyncio.timeout(self._deadline_seconds(request)):
                    decision = await self.decide_unguarded(request)
            except TimeoutError:
                raise DeadlineExceeded from None
            except EngineDied:
                # Now, not when the engine is next looked at: `/health` says no whenever this does.
                self._lifecycle.enter(Phase.FAILED)
                raise
        self._count(decision)
        return decision

    async def decide_unguarded(self, request: DecisionRequest) -> Decision:
        """Decide without admission, deadline or count: the start-up decision, made before anything else is served."""
        started = time.perf_counter()
        plan = await self._plan(request)
        seeded = await self._seed_read(plan, request)
        read = await self._engine.read(read_request(plan, seeded))
        answers = self._answers(plan, read, request)
        return self._conclude(plan, answers, seeded, read, started)

    def _deadline_seconds(self, request: DecisionRequest) -> float:
        limit = self._defaults.deadline_seconds
        return limit if request.deadline_seconds is None else min(limit, request.deadline_seconds)

    async def _plan(self, request: DecisionRequest) -> Plan:
        text = json.dumps([request.rubric, request.instructions])
        key = hashlib.sha256(text.encode()).digest()
        plan = self._plans.get(key)
        if plan is None:
            plan = await _beside_the_loop(text, self._planner.plan, request.rubric, request.instructions)
            self._plans[key] = plan
        return plan

    async def _seed_read(self, plan: Plan, request: DecisionRequest) -> SeededRead:
        text = state_text(request.state)
        return await _beside_the_loop(text, self._planner.seed_read, plan, text, request.seed)

    def _answers(self, plan: Plan, read: ReadResult, request: DecisionRequest) -> tuple[Answer, ...]:
        asked = request.entropy_threshold
        threshold = self._defaults.entropy_threshold if asked is None else asked
        return tuple(
            answer(question, normalise(logprobs), threshold)
            for question, logprobs in zip(plan.questions, read.branch_logprobs[0], strict=True)
        )

    def _conclude(
        self, plan: Plan, answers: tuple[Answer, ...], seeded: SeededRead, read: ReadResult, started: float
    ) -> Decision:
        value = decision_of(answers)
        if not plan.validator.is_valid(value):
            raise InternalError("a decision does not satisfy its rubric; this is a bug")
        is_uncertain = any(made.outcome is Outcome.UNCERTAIN for made in answers)
        return Decision(
            id=f"dec_{secrets.token_hex(12)}",
            model=self._model,
            outcome=Outcome.UNCERTAIN if is_uncertain else Outcome.DECIDED,
            value=value,
            answers=answers,
            stop_reason=StopReason.MAX_READS if is_uncertain else StopReason.ENTROPY,
            seed=seeded.seed,
            read=read,
            total_seconds=time.perf_counter() - started,
        )

    def _count(self, decision: Decision) -> None:
        self._metrics.observe_read(decision.read)
        for made in decision.answers:
            self._metrics.observe_answer(made)
        self._metrics.outcomes.labels(decision.outcome.value).inc()
        self._metrics.stop_reasons.labels(decision.stop_reason.value).inc()
        self._metrics.reads_per_decision.observe(1)


async def _beside_the_loop(text: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work whose cost grows with a text: a short text's at once, a long one's in a thread."""
    if len(text) <= INLINE_CHARS:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)


def read_request(plan: Plan, seeded: SeededRead) -> ReadRequest:
    """What the engine is asked: one canvas, a slot a question."""
    slots = tuple(
        CanvasSlot(position=position, label_token_ids=label_token_ids(labels))
        for position, labels in zip(plan.canvas.slots, plan.labels, strict=True)
    )
    return ReadRequest(
        request_id=f"read_{secrets.token_hex(12)}",
        prompt_token_ids=seeded.prompt_token_ids,
        branches=(Branch(canvas_token_ids=seeded.canvas_token_ids, canvas_slots=slots),),
    )
