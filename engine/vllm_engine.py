"""The real engine: owns vLLM's `AsyncLLM` and the processes behind it.

On CPU vLLM always runs three processes: the front end here, the EngineCore (scheduler) and a worker (model). This class
starts the other two, warms them, reads through them, notices when they die, and leaves none behind.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from typing import TYPE_CHECKING, Any

import engine
from engine.checkpoint import checkpoint_digest, weight_bytes
from engine.compat import SUPPORTED_VLLM_VERSION, apply_ledger
from engine.cpu import choose_dtype, cpu_features, model_threads, usable_cpus
from engine.processes import ProcessFamily
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
from engine.settings import EngineSettings, choose_kv_cache_gib, engine_arguments, engine_environment

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
        """One engine request: the prompt in causal mode, then one denoising step over the canvas."""
        from vllm.inputs import tokens_input

        llm = self._alive()
        # Already in the engine's form: raw prompts take a detour through a thread pool.
        prompt = tokens_input(list(request.prompt_token_ids))
        try:
            outputs = [o async for o in llm.generate(prompt, _sampling_params(request), request.request_id)]
        except Exception as error:
            raise self._failure(error) from error
        if not outputs or not outputs[-1].finished:
            raise ReadFailed("the engine ended a read without an answer; this is a bug")
        return _result(request, outputs[-1])

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
        dtype = self._dtype(size)
        os.environ.update(engine_environment(choose_kv_cache_gib(self.settings, size), self._threads))
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

        arguments = AsyncEngineArgs(**engine_arguments(self.settings, dtype))
        # Not returned: a thread's future would keep the object alive past `close`.
        self._llm = AsyncLLM.from_engine_args(arguments)
        # It logs a traceback when the engine goes, at every shutdown too. `_failure` reports a death that matters.
        logging.getLogger("vllm.v1.engine.async_llm").setLevel(logging.CRITICAL)

    async def _warm_up(self) -> None:
        """Run every class of shape once: narrow and wide canvas, short and longest prompt, one read and a full step."""
        width, longest = (
            self.settings.canvas_length,
            self.settings.max_model_len - self.settings.canvas_length,
        )
        for prompt_tokens, canvas_tokens in ((8, 4), (200, width), (longest, width)):
            await self.read(_warm_up_request(0, prompt_tokens, canvas_tokens))
        batch = [_warm_up_request(n, 16 + n, 4 + n % max(1, width - 4)) for n in range(self.settings.max_num_seqs)]
        await asyncio.gather(*map(self.read, batch))

    def _describe(self, dtype: str) -> EngineInfo:
        import torch

        return EngineInfo(
            model=self.settings.name,
            revision=self.settings.checkpoint.revision,
            checkpoint_digest=checkpoint_digest(self.settings.checkpoint.folder),
            vocabulary_size=self._alive().model_config.get_vocab_size(),
            dtype=dtype,
            fused_reads=False,
            canvas_length=self.settings.canvas_length,
            max_model_len=self.settings.max_model_len,
            vllm_version=SUPPORTED_VLLM_VERSION,
            torch_version=torch.__version__,
            plugin_version=engine.__version__,
            cpu_features=cpu_features(),
            threads=self._threads.count,
        )


def _sampling_params(request: ReadRequest) -> Any:
    """vLLM's own structured read (vllm/utils/diffusion.py): seeded canvas, one denoising step, labels only."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    width = len(request.canvas_token_ids)
    return SamplingParams(
        max_tokens=width,
        detokenize=False,
        skip_clone=True,
        output_kind=RequestOutputKind.FINAL_ONLY,
        logprob_token_ids=list(request.label_token_ids),
        extra_args={
            "diffusion_seed_canvas": list(request.canvas_token_ids),
            "diffusion_canvas_length": width,
            "diffusion_max_steps": 1,
            "diffusion_read_only": True,
            "diffusion_constrained": True,
        },
    )


def _result(request: ReadRequest, output: RequestOutput) -> ReadResult:
    from engine.scheduler import STEPS_KEY

    logprobs, stats = output.outputs[0].logprobs, output.metrics
    if logprobs is None or len(logprobs) != len(request.canvas_token_ids) or stats is None:
        raise ReadFailed("the engine reported no logprobs for a read; this is a bug")
    steps = (output.kv_transfer_params or {}).get(STEPS_KEY, [])
    return ReadResult(
        slot_logprobs=tuple(
            tuple(logprobs[slot.position][label].logprob for label in slot.label_token_ids)
            for slot in request.canvas_slots
        ),
        prompt_tokens=len(request.prompt_token_ids),
        cached_tokens=output.num_cached_tokens or 0,
        canvas_tokens=len(request.canvas_token_ids),
        engine_steps=tuple(EngineStep(index=index, seconds=seconds) for index, seconds in steps),
        queue_seconds=max(0.0, stats.scheduled_ts - stats.queued_ts),
    )


def _warm_up_request(number: int, prompt_tokens: int, canvas_tokens: int) -> ReadRequest:
    slot = CanvasSlot(position=canvas_tokens - 1, label_token_ids=(11, 12))
    return ReadRequest(
        request_id=f"warm-up-{number}-{prompt_tokens}-{canvas_tokens}",
        prompt_token_ids=tuple(11 + (i + number) % 13 for i in range(prompt_tokens)),
        canvas_token_ids=(11,) * canvas_tokens,
        canvas_slots=(slot,),
    )
