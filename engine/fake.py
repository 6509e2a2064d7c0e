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

SlotLogprobs = Callable[[ReadRequest, CanvasSlot], tuple[float, ...]]


def hashed_logprobs(request: ReadRequest, slot: CanvasSlot) -> tuple[float, ...]:
    """Logprobs over a slot's labels that depend on prompt, canvas and slot, and on nothing else."""
    asked = repr((request.prompt_token_ids, request.canvas_token_ids, slot.position)).encode()
    weights = [
        1.0 + int.from_bytes(hashlib.sha256(asked + str(label).encode()).digest()[:2], "big")
        for label in slot.label_token_ids
    ]
    return tuple(math.log(weight / sum(weights)) for weight in weights)


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
    logprobs: SlotLogprobs = hashed_logprobs
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
            fused_reads=False,
            canvas_length=self.settings.canvas_length,
            max_model_len=self.settings.max_model_len,
            vllm_version="none",
            torch_version="none",
            plugin_version="fake",
            cpu_features=(),
            threads=1,
        )

    async def read(self, request: ReadRequest) -> ReadResult:
        """Answer from `logprobs` after `read_seconds`, as two engine steps."""
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
        self._engine_steps += 2
        return ReadResult(
            slot_logprobs=tuple(self.logprobs(request, slot) for slot in request.canvas_slots),
            prompt_tokens=len(request.prompt_token_ids),
            cached_tokens=0,
            canvas_tokens=len(request.canvas_token_ids),
            engine_steps=tuple(
                EngineStep(index=self._engine_steps - back, seconds=self.read_seconds / 2) for back in (1, 0)
            ),
            queue_seconds=0.0,
        )

    async def check(self) -> None:
        """Raise once `is_dead` is set."""
        if self.is_dead or self.is_closed:
            raise EngineDied("the fake engine is dead")

    async def close(self) -> None:
        """Be closed."""
        self.is_closed = True
