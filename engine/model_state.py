"""The worker's side of fused and bundled reads: which tokens see which, where they stand, and which rows are reported.

vLLM's model state (vllm/model_executor/models/diffusion_gemma.py, 0.32.0) takes every request of a step for one of two
things, a stretch of prompt or a canvas: one attention row either way. Here a read may be both, and its draft may hold
several canvases. So each read brings a layout (`engine.bundle`), and in the step that runs its draft

- its tokens are cut into the attention rows of that layout, each with a block table of its own;
- branches after the first get the rotary positions they would have right behind the prompt;
- self-conditioning touches canvas tokens only: even with nothing to condition on it normalises what it touches;
- logits are computed at the slots only, so the sampler's work and the answer's size follow the number of questions.

Everything else, chunks of prompts and requests that are no reads, goes vLLM's way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.model_executor.models.diffusion_gemma import DiffusionGemmaModelState
from vllm.v1.worker.gpu.attn_utils import build_attn_metadata

from engine.bundle import AttentionRow
from engine.placed_read import PlacedRead, ReadNow
from engine.read_sampler import ReadSampler
from engine.row_plan import RowPlan
from engine.settings import CANVAS_LENGTH


class FusedModelState(DiffusionGemmaModelState):
    """`DiffusionGemmaModelState` for reads that bring a layout."""

    def __init__(self, vllm_config: Any, model: Any, encoder_cache: Any, device: torch.device) -> None:
        super().__init__(vllm_config, model, encoder_cache, device)
        self._reads: dict[int, PlacedRead] = {}
        self._reads_now: list[ReadNow] = []
        # Soft embeddings pass from one denoising step to the next, so single-step reads have none, however wide. As
        # wide as a bundle this buffer would be hundreds of megabytes, and cleared for every request that comes and
        # goes. What has several steps must therefore be no wider than one canvas; our engine asks for nothing such.
        canvas_length = vllm_config.additional_config[CANVAS_LENGTH]
        states = self.diffusion_states
        states.self_conditioning_embeds = states.self_conditioning_embeds[:, :canvas_length].clone()

    def custom_sampler(self, sampler: Any) -> tuple[Any, Any]:
        """vLLM's diffusion sampler, made to know reads."""
        diffusion_sampler, rejection_sampler = super().custom_sampler(sampler)
        return ReadSampler(diffusion_sampler, self._reads, self.model.whole_vocabulary), rejection_sampler

    def add_request(self, req_index: int, new_req_data: Any) -> None:
        """Called when a request is first scheduled, and again when it comes back from preemption."""
        super().add_request(req_index, new_req_data)
        read = PlacedRead.from_request(len(new_req_data.prompt_token_ids), new_req_data.sampling_params)
        if read is not None:
            self._reads[req_index] = read

    def remove_request(self, req_id: str) -> None:
        """Called when a request is gone, or preempted."""
        self._reads.pop(self._req_id_to_index.get(req_id, -1), None)
        super().remove_request(req_id)

    def prepare_attn(
        self,
        input_batch: Any,
        cudagraph_mode: Any,
        block_tables: Any,
        slot_mappings: Any,
        attn_groups: Any,
        kv_cache_config: Any,
        *capture: Any,
        **more_capture: Any,
    ) -> dict[str, Any]:
        """Attention metadata of a step, with several rows where a read needs them. Called before `prepare_inputs`."""
        vllm_arguments = (cudagraph_mode, block_tables, slot_mappings, attn_groups, kv_cache_config, *capture)
        self._reads_now = list(self._find_reads(input_batch))
        if not self._reads_now:
            return super().prepare_attn(input_batch, *vllm_arguments, **more_capture)
        self._begin_canvases(input_batch)
        plan = RowPlan.of(self._plain_rows(input_batch), {now.row: now for now in self._reads_now})
        block_sizes = [group.kv_cache_spec.block_size for group in kv_cache_config.kv_cache_groups]
        _keep_logits_of_slots(input_batch, self._reads_now)
        return build_attn_metadata(
            attn_groups=attn_groups,
            num_reqs=len(plan.rows),
            num_tokens=input_batch.num_tokens,
            query_start_loc_gpu=plan.query_start_loc,
            query_start_loc_cpu=plan.query_start_loc,
            max_query_len=plan.max_query_len,
            seq_lens=plan.seq_lens,
            max_seq_len=self.max_model_len,
            block_tables=[plan.block_table(table, size) for table, size in zip(block_tables, block_sizes, strict=True)],
            slot_mappings=slot_mappings,
            kv_cache_config=kv_cache_config,
            causal=plan.causal,
        )

    def prepare_inputs(self, input_batch: Any, req_states: Any) -> dict[str, Any]:
        """Embeddings of a step and, where branches ask for it, positions: what is returned here overrides vLLM's."""
        inputs: dict[str, Any] = super().prepare_inputs(input_batch, req_states)
        self._share_labels(input_batch)
        bundles = [now for now in self._reads_now if len(now.read.layout.branches) > 1]
        if bundles:
            # A copy: the slot mappings were computed from the original, where each token owns the KV slot it is at.
            inputs["positions"] = input_batch.positions.clone()
        for now in bundles:
            for span in now.read.layout.spans:
                start = now.draft_start + span.offset
                inputs["positions"][start : start + span.tokens] = span.position + torch.arange(span.tokens)
        return inputs

    def _find_reads(self, input_batch: Any) -> Iterator[ReadNow]:
        num_logits = np.diff(input_batch.cu_num_logits_np[: input_batch.num_reqs + 1])
        for row in np.flatnonzero(num_logits).tolist():
            read = self._reads.get(int(input_batch.idx_mapping_np[row]))
            # vLLM cuts a draft that would exceed the context. Our engine asks for none; it would fit no layout.
            if read is not None and read.layout.draft_tokens == num_logits[row]:
                start, end = map(int, input_batch.query_start_loc_np[row : row + 2])
                yield ReadNow(row=row, read=read, start=start, draft_start=end - int(num_logits[row]))

    def _begin_canvases(self, input_batch: Any) -> None:
        """Tell the sampler that these denoise. vLLM does so once a prompt is done: too late for a fused read."""
        rows = torch.tensor([now.row for now in self._reads_now])
        self.diffusion_states.is_encoder_phase[input_batch.idx_mapping[rows]] = False

    def _plain_rows(self, input_batch: Any) -> list[AttentionRow]:
        """What vLLM makes of a batch: a row a request, causal until its canvas begins."""
        requests = input_batch.num_reqs
        is_causal = self.diffusion_states.is_encoder_phase[input_batch.idx_mapping[:requests]].tolist()
        tokens = np.diff(input_batch.query_start_loc_np[: requests + 1]).tolist()
        seq_lens = input_batch.seq_lens[:requests].tolist()
        return [
            AttentionRow(tokens=count, seq_len=seq_len, is_causal=causal)
            for count, seq_len, causal in zip(tokens, seq_lens, is_causal, strict=True)
        ]

    def _apply_self_conditioning(
        self,
        decode_slots_np: NDArray[np.int64],
        decode_idx_np: NDArray[np.int64],
        query_start_loc_np: NDArray[np.int32],
        inputs_embeds: torch.Tensor,
        sc_embeds: torch.Tensor,
    ) -> None:
        """The self-conditioning MLP over the canvas tokens of reads, with the soft embeddings of a first step: zero."""
        if self._reads_now:
            tokens = torch.from_numpy(np.concatenate([now.canvas_tokens() for now in self._reads_now]))
            canvas = inputs_embeds[tokens]
            inputs_embeds[tokens] = self.model.self_conditioning(canvas, torch.zeros_like(canvas))
        others = ~np.isin(decode_idx_np, [now.row for now in self._reads_now])
        super()._apply_self_conditioning(
            decode_slots_np[others], decode_idx_np[others], query_start_loc_np, inputs_embeds, sc_embeds
        )

    def _share_labels(self, input_batch: Any) -> None:
        """Let reads of different labels share one step's unembedding, over the labels of all of them.

        vLLM computes logits over the whole vocabulary as soon as two label sets differ or one read is unconstrained.
        `ReadSampler` masks each read's rows to its own labels, which is what vLLM does over the whole vocabulary.
        """
        reads, bounds = self._reads_now, input_batch.cu_num_logits_np
        has_only_reads = len(reads) == np.count_nonzero(np.diff(bounds))
        is_narrow = bool(reads) and has_only_reads and all(now.read.label_token_ids for now in reads)
        unconstrained = [
            np.arange(bounds[now.row], bounds[now.row + 1])
            for now in reads
            if is_narrow and not now.read.is_constrained
        ]
        self.model.whole_vocabulary.want(torch.from_numpy(np.concatenate([np.arange(0), *unconstrained])))
        if is_narrow and self.diffusion_states.step_allowed is None:
            union = sorted({label for now in reads for label in now.read.label_token_ids})
            self.diffusion_states.step_allowed = torch.tensor(union, dtype=torch.int64)


def _keep_logits_of_slots(input_batch: Any, reads_now: Sequence[ReadNow]) -> None:
    """Narrow a step's rows of logits to the slots of its reads. Other requests keep all of theirs."""
    wanted = {now.row: now.slot_tokens() for now in reads_now}
    bounds, all_rows = input_batch.cu_num_logits_np, input_batch.logits_indices.numpy()
    kept = [wanted.get(row, all_rows[bounds[row] : bounds[row + 1]]) for row in range(input_batch.num_reqs)]
    input_batch.cu_num_logits_np = np.cumsum([0, *map(len, kept)], dtype=np.int32)
    input_batch.cu_num_logits = torch.from_numpy(input_batch.cu_num_logits_np)
    input_batch.logits_indices = torch.from_numpy(np.concatenate(kept).astype(np.int64))
