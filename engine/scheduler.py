"""vLLM's diffusion scheduler, planning prompt and canvas of a read in one engine step.

It also reports, per request, which engine steps it took part in: vLLM counts steps for the whole engine only, and a
decision must say what it cost.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from vllm.config import VllmConfig
from vllm.v1.core.sched.diffusion_scheduler import DiffusionScheduler, diffusion_canvas_width
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.core.single_type_kv_cache_manager import SlidingWindowManager
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

from engine.fusion import Candidate, Pending, extra_args_of, fallback_reason, is_single_step_read, make_room
from engine.protocol import EngineStartFailed, Fallback
from engine.report import EngineReport
from engine.settings import FUSED_READS

# What the front end takes to send one request after another, and how old a request is that was sent just now.
GATHER_SECONDS, FRESH_SECONDS = 0.0003, 0.001
# No step waits longer than for so many.
MAX_WAITS = 4


class Unfusable(EngineStartFailed):
    """vLLM is configured for something that fused reads do not work with; the message says what."""


def require_fusable(vllm_config: VllmConfig) -> None:
    """Refuse what cannot work with fused reads: each plans, moves or reports tokens where the plan is not final yet.

    Raises:
        Unfusable: naming the setting.
    """
    refused = {
        "pipeline parallelism": vllm_config.parallel_config.pipeline_parallel_size > 1,
        "tensor parallelism": vllm_config.parallel_config.tensor_parallel_size > 1,
        "prefill context parallelism": vllm_config.parallel_config.prefill_context_parallel_size > 1,
        "decode context parallelism": vllm_config.parallel_config.decode_context_parallel_size > 1,
        "micro-batching": vllm_config.parallel_config.use_ubatching,
        "fast prefill": vllm_config.cache_config.kv_sharing_fast_prefill,
        "a KV connector": vllm_config.kv_transfer_config is not None,
        "KV cache offloading": vllm_config.cache_config.kv_offloading_size is not None,
        "async scheduling": bool(vllm_config.scheduler_config.async_scheduling),
        "speculative decoding": vllm_config.speculative_config is not None,
    }
    if found := [name for name, is_on in refused.items() if is_on]:
        raise Unfusable(
            f"fused reads do not work with {' and '.join(found)}; switch that off, or set DECIDE_FUSED_READS=0"
        )


class CanvasScheduler(DiffusionScheduler):
    """`DiffusionScheduler` with fused reads, where the configuration asks for them, and a report per request."""

    max_num_scheduled_tokens: int

    def __init__(self, vllm_config: VllmConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(vllm_config, *args, **kwargs)
        self._fuses = bool(vllm_config.additional_config.get(FUSED_READS))
        if self._fuses:
            require_fusable(vllm_config)
            self._keep_windows_of_tails()
        self._budget_tokens = self.max_num_scheduled_tokens
        self._engine_steps = 0
        self._waits = 0
        self._planned_at = 0.0
        self._reports: dict[str, EngineReport] = {}

    def _keep_windows_of_tails(self) -> None:
        """Free blocks that left the sliding window later, by as much as a tail may be long.

        Further branches run the prompt's tail once more, when it has been computed already: their first query looks
        back from where the tail begins, and not from the end of what is computed.
        """
        for manager in self.kv_cache_manager.coordinator.single_type_managers:
            if isinstance(manager, SlidingWindowManager):
                manager.extra_retained_tokens += self.block_size - 1

    def add_request(self, request: Request) -> None:
        """Called for each request that has arrived, between two steps.

        An idle engine would start a step with the first of several reads that are sent at once, and the others would
        wait for that step to end. So it waits a moment for the next, again after each that has just been sent: much
        less than a step. The thread that receives requests runs meanwhile.
        """
        super().add_request(request)
        has_room = not self.running and len(self.waiting) < self.max_num_running_reqs and self._waits < MAX_WAITS
        if self._fuses and has_room and time.time() - request.arrival_time < FRESH_SECONDS:
            self._waits += 1
            time.sleep(GATHER_SECONDS)

    def schedule(self, throttle_prefills: bool = False) -> SchedulerOutput:
        """Plan a step, with room for the canvases of the prompts it finishes and for every draft as a whole."""
        self._waits = 0
        room = make_room(self._pending(), self._budget_tokens)
        for request_id in room.held:
            # Compared with `current_step` after `schedule` has advanced it: this leaves out this call alone.
            self.requests[request_id].next_decode_eligible_step = self.current_step + 2
        self.max_num_scheduled_tokens = self._budget_tokens - room.reserved_tokens
        return super().schedule(throttle_prefills)

    def _update_after_schedule(self, scheduler_output: SchedulerOutput) -> None:
        """Called once when a step's plan is complete, before token counts advance (end of `Scheduler.schedule`)."""
        if self._fuses:
            self._fuse(scheduler_output)
        super()._update_after_schedule(scheduler_output)
        if scheduler_output.total_num_scheduled_tokens:
            self._engine_steps += 1
            self._planned_at = time.monotonic()

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput) -> Any:
        """Called once with a step's result, before the outputs of finished requests are built."""
        step = (self._engine_steps, time.monotonic() - self._planned_at)
        for request_id in scheduler_output.num_scheduled_tokens:
            if request_id in self.requests:  # aborted while the step ran
                self._report(request_id).steps.append(step)
        return super().update_from_output(scheduler_output, model_runner_output)

    def _free_request(
        self, request: Request, delay_free_blocks: bool = False
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Called once when a request ends, however it ends."""
        _, ec_transfer_params = super()._free_request(request, delay_free_blocks)
        report = self._reports.pop(request.request_id, self._new_report())
        return report.as_params(), ec_transfer_params

    def _new_report(self) -> EngineReport:
        return EngineReport(block_tokens=self.block_size)

    def _report(self, request_id: str) -> EngineReport:
        return self._reports.setdefault(request_id, self._new_report())

    def _pending(self) -> Iterator[Pending]:
        """What the requests of the next step want, in the order in which vLLM takes them."""
        for request in self.running:
            wanted = request.num_tokens_with_spec + request.num_output_placeholders - request.num_computed_tokens
            yield self._pending_request(request, wanted, is_draft=bool(request.spec_token_ids))
        for request in islice(self.waiting, max(0, self.max_num_running_reqs - len(self.running))):
            yield self._pending_request(request, request.num_tokens - request.num_computed_tokens)

    def _pending_request(self, request: Request, tokens: int, *, is_draft: bool = False) -> Pending:
        fuses = self._fuses and not is_draft and is_single_step_read(extra_args_of(request.sampling_params))
        return Pending(
            request_id=request.request_id,
            tokens=tokens,
            is_draft=is_draft,
            fused_tokens=diffusion_canvas_width(request, self.num_spec_tokens) if fuses else 0,
        )

    def _fuse(self, plan: SchedulerOutput) -> None:
        """Add the canvas to every read whose prompt this step finishes; the rest keeps vLLM's two steps."""
        for request_id, tokens in tuple(plan.num_scheduled_tokens.items()):
            request = self.requests[request_id]
            finishes_prompt = request.num_computed_tokens + tokens == request.num_tokens
            if finishes_prompt and request_id not in plan.scheduled_spec_decode_tokens:
                report = self._report(request_id)
                report.fallback = self._fuse_request(plan, request)
                report.is_fused = report.fallback is None

    def _fuse_request(self, plan: SchedulerOutput, request: Request) -> Fallback | None:
        draft_tokens = diffusion_canvas_width(request, self.num_spec_tokens)
        params = request.sampling_params
        candidate = Candidate(
            extra_args=extra_args_of(params),
            wants_prompt_logprobs=params is not None and params.prompt_logprobs is not None,
            sequence_tokens=request.num_tokens + draft_tokens,
            draft_tokens=draft_tokens,
        )
        budget_tokens = self._budget_tokens - plan.total_num_scheduled_tokens
        reason = fallback_reason(candidate, budget_tokens=budget_tokens, max_model_len=self.max_model_len)
        if reason is None and not self._allocate(plan, request, draft_tokens):
            return Fallback.BLOCKS
        if reason is None:
            _widen(plan, request.request_id, draft_tokens)
        return reason

    def _allocate(self, plan: SchedulerOutput, request: Request, draft_tokens: int) -> bool:
        """Give the draft KV blocks and tell the worker; False, and nothing done, when there are none."""
        tokens = plan.num_scheduled_tokens[request.request_id] + draft_tokens
        blocks = self.kv_cache_manager.allocate_slots(request, tokens)
        if blocks is None:
            return False
        new_block_ids = blocks.get_block_ids(allow_none=True)
        if new_block_ids is not None:
            _append_blocks(plan, request.request_id, new_block_ids)
        return True


def _widen(plan: SchedulerOutput, request_id: str, draft_tokens: int) -> None:
    plan.num_scheduled_tokens[request_id] += draft_tokens
    plan.total_num_scheduled_tokens += draft_tokens
    # Placeholders: the worker takes the canvas from the request itself.
    plan.scheduled_spec_decode_tokens[request_id] = [-1] * draft_tokens


def _append_blocks(plan: SchedulerOutput, request_id: str, block_ids: tuple[list[int], ...]) -> None:
    """Add block ids, one list a KV cache group, where the worker will look for this request's."""
    for new in plan.scheduled_new_reqs:
        if new.req_id == request_id:
            new.block_ids = _joined(new.block_ids, block_ids)
            return
    running = plan.scheduled_cached_reqs
    at = running.req_ids.index(request_id)
    running.new_block_ids[at] = _joined(running.new_block_ids[at], block_ids)


def _joined(block_ids: tuple[list[int], ...] | None, more: tuple[list[int], ...]) -> tuple[list[int], ...]:
    if block_ids is None:
        return more
    return tuple(old + new for old, new in zip(block_ids, more, strict=True))
