"""vLLM's diffusion scheduler, reporting which engine steps each request took part in.

vLLM counts steps for the whole engine only. A decision must say what it cost, so the scheduler notes, per request, the
index and the duration of every step it was scheduled in, and sends them with the request's last output.
"""

from __future__ import annotations

import time
from typing import Any

from vllm.v1.core.sched.diffusion_scheduler import DiffusionScheduler
from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

# The key under which the steps travel in `EngineCoreOutput.kv_transfer_params`.
STEPS_KEY = "onestep_engine_steps"


class CanvasScheduler(DiffusionScheduler):
    """`DiffusionScheduler` that reports `[index, seconds]` per request and engine step."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._engine_steps = 0
        self._planned_at = 0.0
        self._steps_of_request: dict[str, list[tuple[int, float]]] = {}

    def _update_after_schedule(self, scheduler_output: SchedulerOutput) -> None:
        """Called once when a step's plan is complete (vllm/v1/core/sched/scheduler.py, end of `schedule`)."""
        super()._update_after_schedule(scheduler_output)
        if scheduler_output.total_num_scheduled_tokens:
            self._engine_steps += 1
            self._planned_at = time.monotonic()

    def update_from_output(self, scheduler_output: SchedulerOutput, model_runner_output: ModelRunnerOutput) -> Any:
        """Called once with a step's result, before the outputs of finished requests are built."""
        step = (self._engine_steps, time.monotonic() - self._planned_at)
        for request_id in scheduler_output.num_scheduled_tokens:
            if request_id in self.requests:  # aborted while the step ran
                self._steps_of_request.setdefault(request_id, []).append(step)
        return super().update_from_output(scheduler_output, model_runner_output)

    def _free_request(
        self, request: Request, delay_free_blocks: bool = False
    ) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
        """Called once when a request ends, however it ends."""
        _, ec_transfer_params = super()._free_request(request, delay_free_blocks)
        return {STEPS_KEY: self._steps_of_request.pop(request.request_id, [])}, ec_transfer_params
