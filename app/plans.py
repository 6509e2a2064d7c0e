"""Compiled rubrics, kept for the next request that brings the same one."""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import dataclass

from cachetools import LRUCache

from app.canvas.json import Json
from app.canvas.plan import Layout, Order, Plan, Planner
from app.canvas.prompt import state_text
from app.offload import beside_the_loop, in_a_thread
from app.tenant import ANYBODY, Tenant

# A plan's memory grows with its rubric: this many schemas and options count as one entry of the cache.
NODES_PER_ENTRY = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be asked, for whom, and how it is to be laid out."""

    rubric: Json
    instructions: str | None = None
    layout: Layout = Layout.JOINT
    order: Order = Order.RUBRIC_FIRST
    rotation: int = 0
    tenant: Tenant = ANYBODY


class Plans:
    """Plans of one planner, the most recent ones kept: as many as there is room for, a large one taking more of it."""

    def __init__(self, planner: Planner, capacity: int) -> None:
        self.planner = planner
        # Keyed by digest: the cache holds no key that could be read.
        self._kept: LRUCache[bytes, Plan] = LRUCache(capacity, getsizeof=lambda plan: min(_room(plan), capacity))
        # One at a time: threads that compute hold each other up, and the event loop with them.
        self._compiling = asyncio.Semaphore(1)

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan of a request.

        Raises:
            RubricRejected, PromptTooLong, PlanTooLarge: it cannot be laid out.
        """
        key = _digest(request)
        if key not in self._kept:
            await self._compiling.acquire()
            if key in self._kept:
                self._compiling.release()
            else:
                # Whoever asked may leave: what has been begun is finished, has its turn until then, and is kept.
                compiling = asyncio.create_task(self._compile(key, request))
                compiling.add_done_callback(_have_heard)
                return await asyncio.shield(compiling)
        return self._kept[key]

    async def prompt(self, plan: Plan, state: Json) -> tuple[int, ...]:
        """A state laid out under a plan, in tokens.

        Raises:
            PromptTooLong: prompt and canvas do not fit the context.
        """
        text = state_text(state)
        return await beside_the_loop(len(text), self.planner.prompt, plan, text)

    async def _compile(self, key: bytes, request: PlanRequest) -> Plan:
        try:
            # References make much of a short text, so its length does not say how long this takes.
            plan = self._kept[key] = await in_a_thread(
                self.planner.plan,
                request.rubric,
                request.instructions,
                layout=request.layout,
                order=request.order,
                rotation=request.rotation,
            )
        finally:
            self._compiling.release()
        return plan


def _have_heard(task: asyncio.Task[Plan]) -> None:
    """Of a failure that nobody waits for any more."""
    if not task.cancelled():
        task.exception()


def _room(plan: Plan) -> int:
    """One for a rubric of common size, more for one of hundreds of nodes."""
    return -(-plan.rubric.nodes // NODES_PER_ENTRY)


def _digest(request: PlanRequest) -> bytes:
    # The tenant too: how soon an answer comes must not tell one what another has asked.
    tenant = request.tenant.name
    asked = [tenant, request.rubric, request.instructions, request.layout, request.order, request.rotation]
    return hashlib.sha256(json.dumps(asked, ensure_ascii=False).encode()).digest()
