"""vLLM's diffusion sampler for reads whose logits are those of their slots, over the labels of all reads of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from vllm.model_executor.models.diffusion_gemma import _mask_rows_to_allowed
from vllm.v1.outputs import LogprobsTensors

from engine.placed_read import PlacedRead
from engine.whole_vocabulary import WholeVocabulary

# Per request of a step, where its labels stand among those of all; None where it has no rows.
Columns = list[torch.Tensor | None]


class ReadSampler:
    """Wraps a `DiffusionSampler`. To it a read looks like a canvas as wide as the read has slots.

    vLLM's model runner (vllm/v1/worker/gpu/model_runner.py) uses what is defined here of a sampler, and nothing else.
    """

    def __init__(self, sampler: Any, reads: Mapping[int, PlacedRead], whole_vocabulary: WholeVocabulary) -> None:
        self._sampler = sampler
        self._reads = reads
        self._whole_vocabulary = whole_vocabulary
        self.sampling_states = sampler.sampling_states

    @property
    def penalties_state(self) -> Any:
        """None of them: diffusion applies no penalties."""
        return self._sampler.penalties_state

    def apply_staged_writes(self) -> None:
        """Called before every step."""
        self._sampler.apply_staged_writes()

    def add_request(self, req_idx: int, sampling_params: Any) -> None:
        """Called when a request is first scheduled, after the model state's: a read's canvas is ready from then on."""
        self._sampler.add_request(req_idx, sampling_params)
        read = self._reads.get(req_idx)
        if read is None:
            return
        states = self._sampler.diffusion_states
        draft = torch.tensor(sampling_params.extra_args["diffusion_seed_canvas"], dtype=torch.int64)
        self._sampler.req_states.draft_tokens[req_idx, : len(draft)] = draft
        # Copied over the former at the end of every step, for every request in it.
        states.canvas[req_idx, : len(draft)] = draft
        states.canvas_width_np[req_idx] = len(read.slot_offsets)

    def __call__(self, logits: torch.Tensor, input_batch: Any, draft_logits: Any = None) -> Any:
        """Sample a step. Logits are [rows, vocabulary], or [rows, labels of all] when it holds nothing but reads."""
        columns = self._columns(input_batch)
        if columns is None:
            return self._sampler(logits, input_batch, draft_logits)
        bounds = input_batch.cu_num_logits_np
        own_logits = _mask_rows_to_allowed(logits, bounds[:-1], np.diff(bounds), columns)
        output = self._sampler(own_logits, input_batch, draft_logits)
        logprobs = _own_columns(output.logprobs_tensors, columns, bounds.tolist())
        return replace(output, logprobs_tensors=self._over_the_vocabulary(logprobs, own_logits))

    def _columns(self, input_batch: Any) -> Columns | None:
        """None: nothing to be done, for all rows have the same labels and are normalised over them."""
        labels_of_all = self._sampler.diffusion_states.step_allowed
        if labels_of_all is None:
            return None
        slots = input_batch.idx_mapping_np[: input_batch.num_reqs].tolist()
        has_rows = np.diff(input_batch.cu_num_logits_np) > 0
        labels = [self._reads[slot].label_token_ids if has else None for slot, has in zip(slots, has_rows, strict=True)]
        if not len(self._whole_vocabulary.rows) and len(set(labels) - {None}) == 1:
            return None
        return [None if ids is None else torch.searchsorted(labels_of_all, torch.tensor(ids)) for ids in labels]

    def _over_the_vocabulary(self, logprobs: LogprobsTensors, own_logits: torch.Tensor) -> LogprobsTensors:
        """Renormalise the rows of unconstrained reads. All rows of the step are reported: rows are rows of logits."""
        rows = self._whole_vocabulary.rows
        values = logprobs.logprobs.clone()
        values[rows] += (own_logits[rows].logsumexp(dim=-1) - self._whole_vocabulary.log_sums).unsqueeze(1)
        return logprobs._replace(logprobs=values)


def _own_columns(logprobs: LogprobsTensors, columns: Columns, bounds: list[int]) -> LogprobsTensors:
    """Of each request's rows the sampled token and its own labels: as many columns as vLLM passes on.

    Args:
        logprobs: [rows, 1 + labels of all].
        bounds: [requests + 1], of each request's rows.
    """
    rows, width = bounds[-1], 1 + max(len(own) for own in columns if own is not None)
    ids = logprobs.logprob_token_ids.new_zeros((rows, width))
    values = logprobs.logprobs.new_full((rows, width), float("-inf"))
    for own, start, end in zip(columns, bounds, bounds[1:], strict=False):
        if own is not None:
            picked = torch.cat((torch.zeros(1, dtype=torch.int64), own + 1))
            ids[start:end, : len(picked)] = logprobs.logprob_token_ids[start:end, picked]
            values[start:end, : len(picked)] = logprobs.logprobs[start:end, picked]
    return logprobs._replace(logprob_token_ids=ids, logprobs=values)
