"""The real engine: owns vLLM's `AsyncLLM` and the processes behind it.

On CPU vLLM always runs three processes: the front end here, the EngineCore (scheduler) and a worker (model). This class
starts the other two, warms them, reads through them, notices when they die, and leaves none behind.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

import engine
from engine.checkpoint import checkpoint_digest, weight_bytes
from engine.compat import SUPPORTED_VLLM_VERSION, apply_ledger
from engine.cpu import choose_dtype, cpu_features, model_threads, usable_cpus
from engine.memory import ModelSizes, free_memory_bytes, memory_need
from engine.packing import Bundle, BundleLimits, pack
from engine.processes import ProcessFamily
from engine.protocol import (
    EngineDied,
    EngineInfo,
    EngineStartFailed,
    ReadFailed,
    ReadRequest,
    ReadResult,
)
from engine.report import EngineReport
from engine.requests import bundle_result, merge_results, sampling_params
from engine.settings import EngineSettings, choose_kv_cache_gib, engine_arguments, engine_environment
from engine.warm_up import warm_up_request

if TYPE_CHECKING:
    from vllm.outputs import RequestOutput
    from vllm.v1.engine.async_llm import AsyncLLM

# How long stopped processes may take before they are killed.
STOP_SECONDS = 5.0


class VllmEngine:
    """DiffusionGemma on vLLM, CPU. Implements `engine.protocol.Engine`."""

    def __init__(self, settings: EngineSettings) -> None:
        self.settings = settings
        self._llm: AsyncLLM | None = None
        self._family = ProcessFamily()
        self._launching: asyncio.Task[None] | None = None
        self._closing = asyncio.Lock()
        self._block_tokens = settings.block_size
        self._threads = model_threads(usable_cpus())

    async def start(self) -> EngineInfo:
        """Load the checkpoint, start the processes and warm them up."""
        try:
            return await self._start()
        except Exception as error:
            await self.close()
            if isinstance(error, EngineStartFailed):
                raise
            # Nobody has asked anything yet, so the message can quote no request.
            raise EngineStartFailed(
                f"vLLM could not start ({type(error).__name__}: {error}); what its processes say is in the log above"
            ) from error

    async def read(self, request: ReadRequest) -> ReadResult:
        """Branches that fit together are one engine request; where reads are not fused, each is one of its own."""
        bundles = enumerate(pack(request, self._limits()))
        reads = [self._read_bundle(f"{request.request_id}-{number}", bundle) for number, bundle in bundles]
        return merge_results(await _all_or_first_failure(reads))

    async def check(self) -> None:
        """Ask vLLM whether its processes live."""
        self._alive()

    async def close(self) -> None:
        """Stop both processes, kill what does not stop. A start that is under way fails."""
        async with self._closing:
            await self._stop_launching()
            if self._llm is not None:
                llm, self._llm = self._llm, None
                await asyncio.to_thread(llm.shutdown, timeout=STOP_SECONDS)
                # Its finaliser shuts down once more, and fails if that happens while the interpreter exits.
                del llm
                gc.collect()
            await asyncio.to_thread(self._family.stop, STOP_SECONDS)

    async def _start(self) -> EngineInfo:
        size = weight_bytes(self.settings.checkpoint.folder)
        sizes = ModelSizes.from_checkpoint(self.settings.checkpoint.folder)
        dtype = self._dtype(sizes.weight_bytes(size, "bfloat16"))
        kv_cache_gib = choose_kv_cache_gib(self.settings, size)
        need = memory_need(
            self.settings, sizes, weight_bytes=sizes.weight_bytes(size, dtype), kv_cache_gib=kv_cache_gib
        )
        need.require(free_memory_bytes())
        os.environ.update(engine_environment(kv_cache_gib, self._threads))
        # Blocking for as long as the weights take to load, so not on the event loop: `/health` answers meanwhile.
        self._launching = asyncio.create_task(asyncio.to_thread(self._launch, dtype))
        await asyncio.shield(self._launching)
        self._family.members()  # remember the worker too, should the EngineCore between us die first
        await self._warm_up()
        return await asyncio.to_thread(self._describe, dtype)

    async def _stop_launching(self) -> None:
        """Wait until the launching thread has ended. Its processes are stopped as they appear, which makes it fail."""
        if self._launching is None:
            return
        while not self._launching.done():
            await asyncio.to_thread(self._family.stop, STOP_SECONDS)
            await asyncio.wait({self._launching}, timeout=0.1)
        self._launching.exception()  # whoever started it has heard of it
        self._launching = None

    async def _read_bundle(self, request_id: str, bundle: Bundle) -> ReadResult:
        return bundle_result(bundle, await self._generate(request_id, bundle), fused=self.settings.fused_reads)

    async def _generate(self, request_id: str, bundle: Bundle) -> RequestOutput:
        """One engine request."""
        from vllm.inputs import tokens_input

        llm = self._alive()
        if len(bundle.prompt_token_ids) + bundle.layout.draft_tokens > self.settings.max_model_len:
            raise ReadFailed("a read is longer than the context; this is a bug")  # vLLM would cut its canvas
        # Already in the engine's form: raw prompts take a detour through a thread pool.
        prompt = tokens_input(list(bundle.prompt_token_ids), cache_salt=bundle.cache_salt)
        params = sampling_params(bundle, fused=self.settings.fused_reads)
        try:
            outputs = [output async for output in llm.generate(prompt, params, request_id)]
        except Exception as error:
            raise self._failure(error) from error
        if not outputs or not outputs[-1].finished:
            raise ReadFailed("the engine ended a read without an answer; this is a bug")
        return outputs[-1]

    def _limits(self) -> BundleLimits:
        settings = self.settings
        return BundleLimits(
            draft_tokens=settings.draft_tokens if settings.fused_reads else 0,
            total_tokens=min(settings.max_model_len, settings.max_batched_tokens),
            block_tokens=self._block_tokens,
        )

    def _alive(self) -> AsyncLLM:
        if self._llm is None or self._llm.errored:
            raise EngineDied("the engine is not running")
        return self._llm

    def _failure(self, error: Exception) -> EngineDied | ReadFailed:
        died = self._llm is None or self._llm.errored
        # Only the type: vLLM's messages can hold what the request held.
        return EngineDied("the engine died") if died else ReadFailed(f"the read failed ({type(error).__name__})")

    def _dtype(self, weight_bytes: int) -> str:
        return choose_dtype(cpu_features(), weight_bytes) if self.settings.dtype == "auto" else self.settings.dtype

    def _launch(self, dtype: str) -> None:
        apply_ledger()
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        from engine.scheduler import require_fusable

        config = AsyncEngineArgs(**engine_arguments(self.settings, dtype)).create_engine_config()
        if self.settings.fused_reads:
            require_fusable(config)  # here as well as in the EngineCore, whose message would not reach the operator
        # Not returned: a thread's future would keep the object alive past `close`.
        self._llm = AsyncLLM.from_vllm_config(config)
        # It logs a traceback when the engine goes, at every shutdown too. `_failure` reports a death that matters.
        logging.getLogger("vllm.v1.engine.async_llm").setLevel(logging.CRITICAL)

    async def _warm_up(self) -> None:
        """Run every class of shape once: narrow and wide canvas, short and longest prompt, widest bundle, full step.

        The full step mixes constrained and unconstrained reads, and no two have the same labels.
        """
        width, longest = (
            self.settings.canvas_length,
            self.settings.max_model_len - self.settings.canvas_length,
        )
        seqs = self.settings.max_num_seqs  # numbers from here on are not those of the full step
        await self._learn_block_tokens(seqs)
        branches = max(1, self._limits().draft_tokens // (width + self._block_tokens))
        await self.read(warm_up_request(seqs + 1, 200, width))
        await self.read(warm_up_request(seqs + 2, longest, width))
        await self.read(warm_up_request(seqs + 3, 40, width, branches=branches))
        batch = [warm_up_request(n, 16 + n, 4 + n % max(1, width - 4), is_constrained=n % 4 > 0) for n in range(seqs)]
        await asyncio.gather(*map(self.read, batch))

    async def _learn_block_tokens(self, number: int) -> None:
        """Ask the engine for its block size: vLLM may have chosen a multiple of what it was told."""
        (bundle,) = pack(warm_up_request(number, 8, 4), self._limits())
        output = await self._generate("warm-up", bundle)
        if output.kv_transfer_params is None:
            raise EngineStartFailed("the engine's scheduler is not ours; this is a bug")
        self._block_tokens = EngineReport.from_params(output.kv_transfer_params).block_tokens

    def _describe(self, dtype: str) -> EngineInfo:
        import torch

        return EngineInfo(
            model=self.settings.name,
            revision=self.settings.checkpoint.revision,
            checkpoint_digest=checkpoint_digest(self.settings.checkpoint.folder),
            vocabulary_size=self._alive().model_config.get_vocab_size(),
            dtype=dtype,
            fused_reads=self.settings.fused_reads,
            canvas_length=self.settings.canvas_length,
            bundle_tokens=self._limits().draft_tokens,
            max_model_len=self.settings.max_model_len,
            vllm_version=SUPPORTED_VLLM_VERSION,
            torch_version=torch.__version__,
            plugin_version=engine.__version__,
            cpu_features=cpu_features(),
            threads=self._threads.count,
        )


async def _all_or_first_failure(reads: Sequence[Coroutine[Any, Any, ReadResult]]) -> list[ReadResult]:
    """What all of them return; if one fails or this task is cancelled, the others are cancelled."""
    if len(reads) == 1:
        return [await reads[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(read) for read in reads]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
