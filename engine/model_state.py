"""The worker's side of fused and bundled reads: which tokens see which, where they stand, and which rows are reported.

vLLM's model state (vllm/model_executor/models/diffusion_gemma.py, 0.32.0) takes every request of a step for one of two
things, a stretch of prompt or a canvas: one attention row either way. Here a read may be both, and its draft may hold
several canvases. So each read brings a layout (`engine.bundle`), and in the step that runs its draft

- its tokens are cut into the attention rows of that layout, each with a block table of its own;
- branches after the first get the rotary positions they would have right behind the prompt;
- self-conditioning touches canvas tokens only: even with nothing to condition on it normalises what it touches;
- logits are computed at the slots only, so the sampler's work and the answer's size follow the number of questions.

Everything else, chunks of prompts and requests that are no reads of ours, goes vLLM's way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.model_executor.models.diffusion_gemma import DiffusionGemmaModelState
from vllm.v1.worker.gpu.attn_utils import build_attn_metadata

from engine.bundle import AttentionRow, BranchShape, BundleLayout
from engine.fusion import BLOCK_TOKENS, BRANCHES, SLOTS, is_single_step_read
from engine.read_sampler import ReadSampler
from engine.settings import CANVAS_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRead:
    """A single-step read and its layout, as long as the worker knows it."""

    layout: BundleLayout
    slot_offsets: NDArray[np.int64]

    @classmethod
    def from_request(cls, prompt_tokens: int, extra_args: Mapping[str, Any]) -> PlacedRead | None:
        """What came with a request; None: no read. Without a layout it is one canvas, and all of it slots."""
        if not is_single_step_read(extra_args):
            return None
        width = len(extra_args["diffusion_seed_canvas"])
        branches = tuple(BranchShape(*shape) for shape in extra_args.get(BRANCHES, [(0, width)]))
        return cls(
            layout=BundleLayout(prompt_tokens, branches, extra_args.get(BLOCK_TOKENS, 1)),
            slot_offsets=np.array(extra_args.get(SLOTS, range(width)), dtype=np.int64),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNow:
    """A read whose draft runs in this step.

    Attributes:
        row: its index in the batch.
        start, draft_start, end: where its tokens, and of these its draft, stand among the step's tokens.
    """

    row: int
    read: PlacedRead
    start: int
    draft_start: int
    end: int

    def rows(self) -> tuple[AttentionRow, ...]:
        """Its attention rows."""
        return self.read.layout.rows(self.draft_start - self.start)


class FusedModelState(DiffusionGemmaModelState):
    """`DiffusionGemmaModelState` for reads that bring a layout."""

    def __init__(self, vllm_config: Any, model: Any, encoder_cache: Any, device: torch.device) -> None:
        super().__init__(vllm_config, model, encoder_cache, device)
        self._reads: dict[int, PlacedRead] = {}
        self._reads_now: list[ReadNow] = []
        # Soft embeddings pass from one denoising step to the next, so single-step reads have none, however wide. As
        # wide as a bundle this buffer would be gigabytes, cleared for every request that comes and goes.
        states = self.diffusion_states
        states.self_conditioning_embeds = states.self_conditioning_embeds[
            :, : vllm_config.additional_config[CANVAS_LENGTH]
        ].clone()

    def custom_sampler(self, sampler: Any) -> tuple[Any, Any]:
        """vLLM's diffusion sampler, made to know reads."""
        diffusion_sampler, rejection_sampler = super().custom_sampler(sampler)
        return ReadSampler(diffusion_sampler), rejection_sampler

    def add_request(self, req_index: int, new_req_data: Any) -> None:
        """Called when a request is first scheduled, and again when it comes back from preemption."""
        super().add_request(req_index, new_req_data)
        params = new_req_data.sampling_params
        read = PlacedRead.from_request(len(new_req_data.prompt_token_ids), (params and params.extra_args) or {})
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
        for_capture: bool = False,
        ubatch_idx: int = 0,
    ) -> dict[str, Any]:
        """Attention metadata of a step, with several rows where a read needs them. Called before `prepare_inputs`."""
        self._reads_now = list(self._find_reads(input_batch))
        if not self._reads_now:
            return super().prepare_attn(
                input_batch,
                cudagraph_mode,
                block_tables,
                slot_mappings,
                attn_groups,
                kv_cache_config,
                for_capture,
                ubatch_idx,
            )
        self._begin_canvases(input_batch)
        plan = self._plan_rows(input_batch)
        block_sizes = [group.kv_cache_spec.block_size for group in kv_cache_config.kv_cache_groups]
        _keep_logits_of_slots(input_batch, self._reads_now)
        return build_attn_metadata(
            attn_groups=attn_groups,
            num_reqs=len(plan.rows),
            num_tokens=input_batch.num_tokens,
            query_start_loc_gpu=plan.query_start_loc,
            query_start_loc_cpu=plan.query_start_loc,
            max_query_len=max(row.tokens for row in plan.rows),
            seq_lens=torch.tensor([row.seq_len for row in plan.rows], dtype=torch.int32),
            max_seq_len=self.max_model_len,
            block_tables=[plan.block_table(table, size) for table, size in zip(block_tables, block_sizes, strict=True)],
            slot_mappings=slot_mappings,
            kv_cache_config=kv_cache_config,
            causal=torch.tensor([row.is_causal for row in plan.rows], dtype=torch.int32),
        )

    def prepare_inputs(self, input_batch: Any, req_states: Any) -> dict[str, Any]:
        """Embeddings of a step and, where branches ask for it, positions: what is returned here overrides vLLM's."""
        inputs: dict[str, Any] = super().prepare_inputs(input_batch, req_states)
        self._share_labels(input_batch)
        if any(len(now.read.layout.branches) > 1 for now in self._reads_now):
            # A copy: the slot mappings were computed from the original, where each token owns the KV slot it is at.
            inputs["positions"] = input_batch.positions.clone()
            for now in self._reads_now:
                for span in now.read.layout.spans:
                    start = now.draft_start + span.offset
                    inputs["positions"][start : start + span.tokens] = torch.arange(
                        span.position, span.position + span.tokens
                    )
        return inputs

    def _find_reads(self, input_batch: Any) -> Iterator[ReadNow]:
        num_logits = np.diff(input_batch.cu_num_logits_np[: input_batch.num_reqs + 1])
        for row in np.flatnonzero(num_logits):
            read = self._reads.get(int(input_batch.idx_mapping_np[row]))
            if read is not None:
                start, end = map(int, input_batch.query_start_loc_np[row : row + 2])
                yield ReadNow(row=int(row), read=read, start=start, draft_start=end - int(num_logits[row]), end=end)

    def _begin_canvases(self, input_batch: Any) -> None:
        """Tell the sampler that these denoise. vLLM does so once a prompt is done: too late for a fused read."""
        rows = torch.tensor([now.row for now in self._reads_now])
        self.diffusion_states.is_encoder_phase[input_batch.idx_mapping[rows]] = False

    def _plan_rows(self, input_batch: Any) -> _RowPlan:
        reads = {now.row: now.rows() for now in self._reads_now}
        is_causal = self.diffusion_states.is_encoder_phase[input_batch.idx_mapping[: input_batch.num_reqs]].tolist()
        seq_lens = input_batch.seq_lens[: input_batch.num_reqs].tolist()
        tokens = np.diff(input_batch.query_start_loc_np[: input_batch.num_reqs + 1]).tolist()
        sources: list[int] = []
        rows: list[AttentionRow] = []
        for row in range(input_batch.num_reqs):
            plain = AttentionRow(tokens=tokens[row], seq_len=seq_lens[row], is_causal=is_causal[row])
            own = reads.get(row, (plain,))
            sources += [row] * len(own)
            rows += own
        shared = {now.row: now.read.layout.shared_tokens for now in self._reads_now}
        return _RowPlan(sources=sources, rows=rows, shared_tokens=[shared.get(source, 0) for source in sources])

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
            tokens = torch.from_numpy(np.concatenate([_canvas_tokens(now) for now in self._reads_now]))
            canvas = inputs_embeds[tokens]
            inputs_embeds[tokens] = self.model.self_conditioning(canvas, torch.zeros_like(canvas))
        others = ~np.isin(decode_idx_np, [now.row for now in self._reads_now])
        super()._apply_self_conditioning(
            decode_slots_np[others], decode_idx_np[others], query_start_loc_np, inputs_embeds, sc_embeds
        )

    def _share_labels(self, input_batch: Any) -> None:
        """Let constrained reads of different labels share one step's unembedding, over the labels of all of them.

        vLLM computes logits over the whole vocabulary as soon as two label sets differ. `ReadSampler` masks each
        read's rows to its own labels, which is what vLLM does over the whole vocabulary.
        """
        states = self.diffusion_states
        slots = input_batch.idx_mapping_np[[now.row for now in self._reads_now]].tolist()
        has_only_reads = len(slots) == np.count_nonzero(np.diff(input_batch.cu_num_logits_np))
        if not slots or states.step_allowed is not None or not has_only_reads:
            return
        if all(slot in states.constrained for slot in slots):
            union = sorted({label for slot in slots for label in states.constrained[slot]})
            states.step_allowed = torch.tensor(union, dtype=torch.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowPlan:
    """The attention rows of a step.

    Attributes:
        sources: per row, the index in the batch of the request it belongs to.
        shared_tokens: per row, the tokens of the prompt's full blocks, where rows have blocks of their own.
    """

    sources: list[int]
    rows: list[AttentionRow]
    shared_tokens: list[int]

    @property
    def query_start_loc(self) -> torch.Tensor:
        """int32 [rows + 1]: where each row's tokens begin among the step's."""
        return torch.tensor(np.cumsum([0, *(row.tokens for row in self.rows)]), dtype=torch.int32)

    def block_table(self, table: torch.Tensor, block_size: int) -> torch.Tensor:
        """int32 [rows, blocks] from vLLM's [requests, blocks], for KV blocks of `block_size` tokens."""
        rows = table[torch.tensor(self.sources)]
        for index, (row, shared_tokens) in enumerate(zip(self.rows, self.shared_tokens, strict=True)):
            if row.own_position is not None:
                first, own, count = (
                    shared_tokens // block_size,
                    row.own_position // block_size,
                    -(-row.own_tokens // block_size),
                )
                # The own blocks come later in the request, so what is overwritten may be what is read: copy first.
                rows[index, first : first + count] = rows[index, own : own + count].clone()
        return rows


def _canvas_tokens(now: ReadNow) -> NDArray[np.int64]:
    """Where the canvases of a read stand among the step's tokens."""
    canvases = now.read.layout.canvases
    tokens: NDArray[np.int64] = np.concatenate([np.arange(span.offset, span.end) for span in canvases])
    return tokens + now.draft_start


def _keep_logits_of_slots(input_batch: Any, reads_now: Sequence[ReadNow]) -> None:
    """Narrow a step's rows of logits to the slots of its reads. Other requests keep all of theirs."""
    wanted = {now.row: now.draft_start + now.read.slot_offsets for now in reads_now}
    bounds = input_batch.cu_num_logits_np
    all_rows = input_batch.logits_indices.numpy()
    kept = [wanted.get(row, all_rows[bounds[row] : bounds[row + 1]]) for row in range(input_batch.num_reqs)]
    input_batch.cu_num_logits_np = np.cumsum([0, *map(len, kept)], dtype=np.int32)
    input_batch.cu_num_logits = torch.from_numpy(input_batch.cu_num_logits_np)
    input_batch.logits_indices = torch.from_numpy(np.concatenate(kept).astype(np.int64))
