"""A deterministic engine without a model, for the shell's own logic and for clients' tests (`DECIDE_ENGINE=fake`).

Its logprobs are a hash of what was asked, so equal requests get equal answers. It records what it was asked and can be
told to be slow, to fail, or to be dead.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.protocol import (
    Branch,
    CanvasSlot,
    EngineDied,
    EngineInfo,
    EngineStartFailed,
    EngineStep,
    ReadFailed,
    ReadRequest,
    ReadResult,
)
from engine.settings import EngineSettings

REMEMBERED_READS = 1000

# A label weighs at most 2 ** 16: this is more than all the labels of a slot.
VOCABULARY_WEIGHT = 2**24

Logprobs = Callable[[ReadRequest, Branch, CanvasSlot], tuple[float, ...]]


def hashed_logprobs(request: ReadRequest, branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
    """Logprobs that depend on what the branch sees and on the slot, and on nothing else.

    Over the slot's own labels. Where the read is not constrained over a vocabulary that is the same for all, so that
    a slot may be read in parts.
    """
    prompt = request.prompt_token_ids + branch.suffix_token_ids
    asked = repr((prompt, branch.canvas_token_ids, slot.position)).encode()
    weights = [
        1.0 + int.from_bytes(hashlib.sha256(asked + str(label).encode()).digest()[:2], "big")
        for label in slot.label_token_ids
    ]
    total = sum(weights) if request.is_constrained else VOCABULARY_WEIGHT
    return tuple(math.log(weight / total) for weight in weights)


@dataclass(kw_only=True)
class FakeEngine:
    """Implements `engine.protocol.Engine`.

    Attributes:
        start_seconds, read_seconds: how long starting and a read take.
        start_error, read_error: raised instead of an answer.
        gate: reads wait until it is set; starts set.
        logprobs: what a slot reads as.
        requests: the latest reads asked for, in order.
        aborted: ids of the latest reads that were cancelled.
    """

    settings: EngineSettings
    start_seconds: float = 0.0
    read_seconds: float = 0.0
    start_error: EngineStartFailed | None = None
    read_error: ReadFailed | EngineDied | None = None
    logprobs: Logprobs = hashed_logprobs
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    requests: deque[ReadRequest] = field(default_factory=lambda: deque(maxlen=REMEMBERED_READS))
    aborted: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED_READS))
    is_dead: bool = False
    is_closed: bool = False
    _engine_steps: int = 0

    def __post_init__(self) -> None:
        self.gate.set()

    async def start(self) -> EngineInfo:
        """Take `start_seconds`, then be ready."""
        await asyncio.sleep(self.start_seconds)
        if self.start_error is not None:
            raise self.start_error
        return EngineInfo(
            model=self.settings.name,
            revision=self.settings.checkpoint.revision,
            checkpoint_digest="fake",
            vocabulary_size=sys.maxsize,
            dtype="float32",
            fused_reads=self.settings.fused_reads,
            canvas_length=self.settings.canvas_length,
            bundle_tokens=self.settings.draft_tokens if self.settings.fused_reads else 0,
            max_model_len=self.settings.max_model_len,
            vllm_version="none",
            torch_version="none",
            plugin_version="fake",
            cpu_features=(),
            threads=1,
        )

    async def read(self, request: ReadRequest) -> ReadResult:
        """Answer from `logprobs` after `read_seconds`: one engine step, two where reads are not fused."""
        self.requests.append(request)
        try:
            await self.gate.wait()
            await asyncio.sleep(self.read_seconds)
            await self.check()
        except asyncio.CancelledError:
            self.aborted.append(request.request_id)
            raise
        if self.read_error is not None:
            raise self.read_error
        return ReadResult(
            branch_logprobs=tuple(
                tuple(self.logprobs(request, branch, slot) for slot in branch.canvas_slots)
                for branch in request.branches
            ),
            fused_reads=len(request.branches) if self.settings.fused_reads else 0,
            fallbacks=(),
            prompt_tokens=len(request.prompt_token_ids) + sum(len(b.suffix_token_ids) for b in request.branches),
            cached_tokens=0,
            canvas_tokens=sum(len(branch.canvas_token_ids) for branch in request.branches),
            engine_steps=self._take_steps(1 if self.settings.fused_reads else 2),
            queue_seconds=0.0,
        )

    def _take_steps(self, count: int) -> tuple[EngineStep, ...]:
        first = self._engine_steps + 1
        self._engine_steps += count
        return tuple(
            EngineStep(index=index, seconds=self.read_seconds / count) for index in range(first, first + count)
        )

    async def check(self) -> None:
        """Raise once `is_dead` is set."""
        if self.is_dead or self.is_closed:
            raise EngineDied("the fake engine is dead")

    async def close(self) -> None:
        """Be closed."""
        self.is_closed = True
