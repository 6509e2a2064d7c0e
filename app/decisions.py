"""The one way from a request to a decision: rubric, plan, prompt, read, answers.

The only module that knows both the canvas and the engine's contract.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from app.admission import Admission
from app.canvas.decision import Answer, Outcome, decide, overall
from app.canvas.json import Json
from app.canvas.plan import Plan, SeededRead
from app.errors import DeadlineExceeded, InternalError
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from app.offload import beside_the_loop
from app.plans import PlanRequest, Plans
from engine.protocol import Branch, CanvasSlot, Engine, EngineDied, ReadRequest, ReadResult

# To decide takes about as long per node of a rubric as to tokenise so many characters.
CHARS_PER_NODE = 20


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
    asked: PlanRequest
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
    outcome: Literal[Outcome.DECIDED, Outcome.UNCERTAIN]
    value: dict[str, Json]
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
        """Decide, within the deadline.

        Raises:
            RubricRejected, PromptTooLong, PlanTooLarge: the request cannot be laid out.
            NotServing, Overloaded, DeadlineExceeded: not now.
            EngineDied, ReadFailed, NonFiniteLogprobs: the engine failed.
            InternalError: a bug of ours.
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
        plan = await self._plans.plan(request.asked)
        seeded = await self._plans.seed_read(plan, request.state, request.seed)
        read = await self._engine.read(read_request(plan, seeded))
        size = plan.rubric.nodes * CHARS_PER_NODE
        return await beside_the_loop(size, self._conclude, plan, request, seeded, read, started)

    def _deadline_seconds(self, request: DecisionRequest) -> float:
        limit = self._defaults.deadline_seconds
        return limit if request.deadline_seconds is None else min(limit, request.deadline_seconds)

    def _conclude(
        self, plan: Plan, request: DecisionRequest, seeded: SeededRead, read: ReadResult, started: float
    ) -> Decision:
        asked = request.entropy_threshold
        threshold = self._defaults.entropy_threshold if asked is None else asked
        value, answers = decide(plan.rubric, plan.collect(read.branch_logprobs), threshold)
        if not plan.validator.is_valid(value):
            raise InternalError("a decision does not satisfy its rubric; this is a bug")
        outcome = overall(answers)
        return Decision(
            id=f"dec_{secrets.token_hex(12)}",
            model=self._model,
            outcome=outcome,
            value=value,
            answers=answers,
            stop_reason=StopReason.ENTROPY if outcome is Outcome.DECIDED else StopReason.MAX_READS,
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


def read_request(plan: Plan, seeded: SeededRead) -> ReadRequest:
    """What the engine is asked: the branches of a plan behind one prompt."""
    branches = (
        Branch(
            suffix_token_ids=branch.suffix_token_ids,
            canvas_token_ids=canvas,
            canvas_slots=tuple(
                CanvasSlot(position=slot.position, label_token_ids=slot.label_token_ids) for slot in branch.slots
            ),
        )
        for branch, canvas in zip(plan.branches, seeded.canvases, strict=True)
    )
    return ReadRequest(
        request_id=f"read_{secrets.token_hex(12)}",
        prompt_token_ids=seeded.prompt_token_ids,
        branches=tuple(branches),
        # Constrained logprobs are relative to the labels that travel together: parts of one slot could not be compared.
        is_constrained=not plan.is_in_parts,
    )
