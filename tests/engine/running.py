"""A real engine that plain tests can ask: it lives on an event loop of its own, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Self, TypeVar

from engine.checkpoint import Checkpoint
from engine.protocol import EngineInfo, ReadRequest, ReadResult
from engine.settings import EngineSettings
from engine.vllm_engine import VllmEngine

T = TypeVar("T")


def engine_settings(checkpoint: Path, **changed: Any) -> EngineSettings:
    """Settings of an engine in float32 whose step budget is small enough to be used up."""
    fields: dict[str, Any] = {
        "checkpoint": Checkpoint(folder=checkpoint, revision=""),
        "name": "test",
        "dtype": "float32",
        "canvas_length": 64,
        "fused_reads": True,
        "bundle_tokens": 4095,
        "max_model_len": 4096,
        "max_num_seqs": 16,
        "max_batched_tokens": 4096,
        "kv_cache_gib": 1,
        "block_size": 32,
    }
    return EngineSettings(**{**fields, **changed})


class RunningEngine(AbstractContextManager["RunningEngine"]):
    """Starts an engine on entry, closes it on exit."""

    def __init__(self, settings: EngineSettings) -> None:
        self.engine = VllmEngine(settings)
        self.info: EngineInfo | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine-under-test")

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.info = self.wait(self.engine.start())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.wait(self.engine.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something on the engine's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def read(self, request: ReadRequest) -> ReadResult:
        """One request, alone."""
        return self.wait(self.engine.read(request))

    def read_one_by_one(self, requests: Iterable[ReadRequest]) -> list[ReadResult]:
        """Each when the one before is done."""
        return [self.read(request) for request in requests]

    def read_together(self, requests: Iterable[ReadRequest]) -> list[ReadResult]:
        """All at once."""

        async def together() -> list[ReadResult]:
            return await asyncio.gather(*map(self.engine.read, requests))

        return self.wait(together())

    def generate(self, prompt: list[int], params: Any, request_id: str) -> Coroutine[Any, Any, Any]:
        """A request of vLLM's own kind, past ours: its last output."""
        from vllm.inputs import tokens_input

        async def last() -> Any:
            assert self.engine._llm is not None
            outputs = self.engine._llm.generate(tokens_input(prompt), params, request_id)
            return [output async for output in outputs][-1]

        return last()

    def forget_prefixes(self) -> None:
        """Empty the prefix cache."""
        assert self.engine._llm is not None
        assert self.wait(self.engine._llm.reset_prefix_cache())

    def in_worker(self, function: Any, *args: Any) -> Any:
        """Call a function of the tests in the engine's worker process, with the worker as its first argument."""
        assert self.engine._llm is not None
        (result,) = self.wait(self.engine._llm.collective_rpc(function, args=args))
        return result
