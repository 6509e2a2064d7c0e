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
from app.offload import beside_the_loop


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What is to be asked, and how it is to be laid out."""

    rubric: Json
    instructions: str | None = None
    layout: Layout = Layout.JOINT
    order: Order = Order.RUBRIC_FIRST
    rotation: int = 0


class Plans:
    """Plans of one planner, the most recent ones kept."""

    def __init__(self, planner: Planner, capacity: int) -> None:
        self.planner = planner
        # Keyed by digest: the cache holds no key that could be read.
        self._kept: LRUCache[bytes, Plan] = LRUCache(capacity)
        # One at a time: threads that compute hold each other up, and the event loop with them.
        self._compiling = asyncio.Semaphore(1)

    async def plan(self, request: PlanRequest) -> Plan:
        """The plan of a request.

        Raises:
            RubricRejected, PromptTooLong, PlanTooLarge: it cannot be laid out.
        """
        key = _digest(request)
        if key not in self._kept:
            async with self._compiling:
                # References make much of a short text, so its length does not say how long this takes.
                if key not in self._kept:
                    self._kept[key] = await asyncio.to_thread(self._compile, request)
                return self._kept[key]
        return self._kept[key]

    async def prompt(self, plan: Plan, state: Json) -> tuple[int, ...]:
        """A state laid out under a plan, in tokens.

        Raises:
            PromptTooLong: prompt and canvas do not fit the context.
        """
        text = state_text(state)
        return await beside_the_loop(len(text), self.planner.prompt, plan, text)

    def _compile(self, request: PlanRequest) -> Plan:
        return self.planner.plan(
            request.rubric,
            request.instructions,
            layout=request.layout,
            order=request.order,
            rotation=request.rotation,
        )


def _digest(request: PlanRequest) -> bytes:
    asked = [request.rubric, request.instructions, request.layout, request.order, request.rotation]
    return hashlib.sha256(json.dumps(asked, ensure_ascii=False).encode()).digest()
