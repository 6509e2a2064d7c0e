"""vLLM's diffusion sampler for reads whose logits are those of their slots alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from vllm.model_executor.models.diffusion_gemma import _mask_rows_to_allowed
from vllm.v1.outputs import LogprobsTensors

from engine.fusion import SLOTS, is_single_step_read


class ReadSampler:
    """Wraps a `DiffusionSampler`. To it a read looks like a canvas as wide as the read has slots.

    vLLM's model runner (vllm/v1/worker/gpu/model_runner.py) uses what is defined here of a sampler, and nothing else.
    """

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self.sampling_states = sampler.sampling_states

    @property
    def penalties_state(self) -> Any:
        """None of them: diffusion applies no penalties."""
        return self._sampler.penalties_state

    def apply_staged_writes(self) -> None:
        """Called before every step."""
        self._sampler.apply_staged_writes()

    def add_request(self, req_idx: int, sampling_params: Any) -> None:
        """Called when a request is first scheduled: a read's canvas is ready from then on."""
        self._sampler.add_request(req_idx, sampling_params)
        extra_args = sampling_params.extra_args or {}
        if not is_single_step_read(extra_args):
            return
        states = self._sampler.diffusion_states
        draft = torch.tensor(extra_args["diffusion_seed_canvas"], dtype=torch.int64)
        self._sampler.req_states.draft_tokens[req_idx, : len(draft)] = draft
        # Copied over the former at the end of every step, for every request in it.
        states.canvas[req_idx, : len(draft)] = draft
        if SLOTS in extra_args:
            states.canvas_width_np[req_idx] = len(extra_args[SLOTS])

    def __call__(self, logits: torch.Tensor, input_batch: Any, draft_logits: Any = None) -> Any:
        """Sample a step. Logits are [rows, vocabulary], or [rows, labels] when all its requests are constrained."""
        columns = self._columns(input_batch)
        if columns is None:
            return self._sampler(logits, input_batch, draft_logits)
        bounds = input_batch.cu_num_logits_np
        own_labels_only = _mask_rows_to_allowed(logits, bounds[:-1], np.diff(bounds), columns)
        output = self._sampler(own_labels_only, input_batch, draft_logits)
        return replace(output, logprobs_tensors=_own_columns(output.logprobs_tensors, columns))

    def _columns(self, input_batch: Any) -> list[torch.Tensor | None] | None:
        """Per request of a step its labels' columns, None where it has no rows; None: all have the same labels."""
        states = self._sampler.diffusion_states
        if states.step_allowed is None:
            return None
        slots = input_batch.idx_mapping_np[: input_batch.num_reqs].tolist()
        has_rows = np.diff(input_batch.cu_num_logits_np[: input_batch.num_reqs + 1]) > 0
        labels = [states.constrained[slot] if has else None for slot, has in zip(slots, has_rows, strict=True)]
        if len({ids for ids in labels if ids is not None}) == 1:
            return None
        return [None if ids is None else torch.searchsorted(states.step_allowed, torch.tensor(ids)) for ids in labels]


def _own_columns(logprobs: LogprobsTensors | None, columns: list[torch.Tensor | None]) -> LogprobsTensors | None:
    """Of each request's rows the sampled token and its own labels: as many columns as vLLM passes on.

    Args:
        logprobs: [rows, 1 + labels of all].
        columns: per request of the batch, where its own labels stand among those of all.
    """
    if logprobs is None:
        return None
    starts = logprobs.cu_num_generated_tokens
    rows = len(logprobs.selected_token_ranks)
    width = 1 + max(len(own) for own in columns if own is not None)
    ids = logprobs.logprob_token_ids.new_zeros((rows, width))
    values = logprobs.logprobs.new_full((rows, width), float("-inf"))
    for own, start, end in zip(columns, starts, [*starts[1:], rows], strict=True):
        if own is not None:
            picked = torch.cat((torch.zeros(1, dtype=torch.int64), own + 1))
            ids[start:end, : len(picked)] = logprobs.logprob_token_ids[start:end, picked]
            values[start:end, : len(picked)] = logprobs.logprobs[start:end, picked]
    return logprobs._replace(logprob_token_ids=ids, logprobs=values)
