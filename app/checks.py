"""Looking at a rubric without reading anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.admission import Admission
from app.canvas.errors import PlanTooLarge, Problem, PromptTooLong, RubricRejected
from app.canvas.inspection import Inspection, inspect
from app.canvas.json import Json
from app.canvas.policy import check_max_reads
from app.canvas.prompt import state_text
from app.lifecycle import Lifecycle
from app.offload import in_a_thread
from app.plans import PlanRequest, Plans

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """A rubric to look at, with the state it is to meet if there is one."""

    asked: PlanRequest
    state: Json = None
    max_reads: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What came of it.

    Attributes:
        problems: everything wrong with it; empty if `/decide` would take it.
        inspection: what it becomes; None if it was not understood.
        state: the state's text, as the model sees it, where it fits.
        state_tokens: its length.
    """

    problems: tuple[Problem, ...] = ()
    inspection: Inspection | None = None
    state: str | None = None
    state_tokens: int | None = None


class CheckService:
    """Checks rubrics. One instance per application, made when the engine is up."""

    def __init__(self, *, plans: Plans, max_reads: int, admission: Admission, lifecycle: Lifecycle) -> None:
        self._plans = plans
        self._max_reads = max_reads
        self._admission = admission
        self._lifecycle = lifecycle

    async def answer(self, request: CheckRequest, write: Callable[[Check], T]) -> T:
        """What is written of a look at a rubric. What is wrong with it is the answer, not an error.

        Raises:
            NotServing, Overloaded, QuotaExceeded: not now.
        """
        self._lifecycle.require_ready()
        with self._admission.permit(request.asked.tenant):
            # As much work as the rubric is large.
            return await in_a_thread(write, await self._check(request))

    async def _check(self, request: CheckRequest) -> Check:
        if problems := check_max_reads(request.max_reads, self._max_reads):
            return Check(problems=problems)
        try:
            plan = await self._plans.plan(request.asked)
        except RubricRejected as rejected:
            return Check(problems=rejected.problems)
        except (PromptTooLong, PlanTooLarge) as refusal:
            return Check(problems=(refusal.problem,))
        planner = self._plans.planner
        inspection = await in_a_thread(inspect, plan, planner.tokenizer, planner.max_model_len)
        if request.state is None:
            return Check(inspection=inspection)
        try:
            prompt = await self._plans.prompt(plan, request.state)
        except PromptTooLong as refusal:
            return Check(problems=(refusal.problem,), inspection=inspection)
        tokens = len(prompt) - inspection.prompt_tokens
        return Check(inspection=inspection, state=state_text(request.state), state_tokens=tokens)
