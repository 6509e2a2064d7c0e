"""Host versions of the kernels of `vllm/v1/worker/gpu/input_batch.py` (0.32.0).

Each keeps the argument order of the Triton kernel it replaces. "req" is a row of the runner's request state, "batch" a
row of this step's batch.
"""

from __future__ import annotations

from typing import Any

import torch

from engine.kernels.launch import Grid, host_kernel, spans


@host_kernel
def prepare_prefill_inputs(
    grid: Grid,
    input_ids: torch.Tensor,
    next_prefill_tokens: torch.Tensor,
    next_prefill_tokens_stride: int,
    num_lookahead: int,
    idx_mapping: torch.Tensor,
    query_start_loc: torch.Tensor,
    all_token_ids: torch.Tensor,
    all_token_ids_stride: int,
    prefill_lens: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    **meta: int,
) -> None:
    """Copy each prefilling request's next prompt tokens into the step's input, and note the tokens after them."""
    for batch, (start, end) in enumerate(spans(query_start_loc, grid[0])):
        req = int(idx_mapping[batch])
        prefill_len, computed = int(prefill_lens[req]), int(num_computed_tokens[req])
        if computed >= prefill_len:
            continue
        stop = computed + end - start
        input_ids[start:end] = all_token_ids[req, computed:stop]
        ahead = all_token_ids[req, stop : max(stop, min(stop + num_lookahead, prefill_len))]
        next_prefill_tokens[:num_lookahead, req] = 0
        next_prefill_tokens[: len(ahead), req] = ahead.to(next_prefill_tokens.dtype)


@host_kernel
def prepare_pos_seq_lens(
    grid: Grid,
    positions: torch.Tensor,
    seq_lens: torch.Tensor,
    idx_mapping: torch.Tensor,
    query_start_loc: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    max_num_reqs: int,
    **meta: int,
) -> None:
    """Positions of every scheduled token and the sequence length of every request after this step."""
    num_reqs = grid[0] - 1  # the last program of the Triton grid only pads
    seq_lens[num_reqs:max_num_reqs] = 0
    for batch, (start, end) in enumerate(spans(query_start_loc, num_reqs)):
        computed = int(num_computed_tokens[int(idx_mapping[batch])])
        seq_lens[batch] = computed + end - start
        positions[start:end] = torch.arange(computed, computed + end - start)


@host_kernel
def combine_sampled_and_draft_tokens(
    grid: Grid,
    input_ids: torch.Tensor,
    idx_mapping: torch.Tensor,
    last_sampled_tokens: torch.Tensor,
    query_start_loc: torch.Tensor,
    seq_lens: torch.Tensor,
    prefill_len: torch.Tensor,
    draft_tokens: torch.Tensor,
    draft_tokens_stride: int,
    cu_num_logits: torch.Tensor,
    logits_indices: torch.Tensor,
    NUM_NEW_SAMPLED_TOKENS: int = 1,
    **meta: int,
) -> None:
    """Place each request's draft tokens (for diffusion: its canvas) in the input and list the rows that need logits."""
    for batch, (first, last) in enumerate(spans(cu_num_logits, grid[0])):
        req, query_end = int(idx_mapping[batch]), int(query_start_loc[batch + 1])
        num_logits = last - first
        logits_start = query_end - num_logits
        logits_indices[first:last] = torch.arange(logits_start, query_end)
        seq_len, prompt_len = int(seq_lens[batch]), int(prefill_len[req])
        if seq_len <= prompt_len:
            continue
        if NUM_NEW_SAMPLED_TOKENS > 0 and seq_len - num_logits >= prompt_len:
            input_ids[logits_start] = last_sampled_tokens[req].reshape(-1)[0]
        num_drafts = num_logits - NUM_NEW_SAMPLED_TOKENS
        if num_drafts > 0:
            input_ids[query_end - num_drafts : query_end] = draft_tokens[req, :num_drafts].to(input_ids.dtype)


@host_kernel
def get_num_sampled_and_rejected(
    grid: Grid,
    num_sampled: torch.Tensor,
    num_rejected: torch.Tensor,
    seq_lens: torch.Tensor,
    cu_num_logits: torch.Tensor,
    idx_mapping: torch.Tensor,
    prefill_len: torch.Tensor,
) -> None:
    """Drafts that were not accepted; a request in the middle of its prompt sampled and rejected nothing."""
    for batch, (first, last) in enumerate(spans(cu_num_logits, grid[0])):
        if int(seq_lens[batch]) < int(prefill_len[int(idx_mapping[batch])]):
            num_sampled[batch] = num_rejected[batch] = 0
        else:
            num_rejected[batch] = last - first - int(num_sampled[batch])


@host_kernel
def post_update(
    grid: Grid,
    idx_mapping: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    last_sampled_tokens: torch.Tensor,
    output_bin_counts: torch.Tensor | None,
    output_bin_counts_stride: int,
    sampled_tokens: torch.Tensor,
    sampled_tokens_stride: int,
    num_sampled: torch.Tensor,
    num_rejected: torch.Tensor,
    query_start_loc: torch.Tensor | None,
    all_token_ids: torch.Tensor,
    all_token_ids_stride: int,
    total_len: torch.Tensor,
    **meta: int,
) -> None:
    """Append what was sampled to each request and advance its count of computed tokens."""
    for batch in range(grid[0]):
        req = int(idx_mapping[batch])
        if req < 0:
            continue
        total, count = int(total_len[req]), int(num_sampled[batch])
        if count > 0:
            tokens = sampled_tokens[batch, :count]
            last_sampled_tokens[req] = tokens[-1]
            total_len[req] = total + count
            all_token_ids[req, total : total + count] = tokens.to(all_token_ids.dtype)
            if output_bin_counts is not None:
                ones = torch.ones(count, dtype=output_bin_counts.dtype)
                output_bin_counts[req].index_add_(0, tokens.long(), ones)
        query_len = 0 if query_start_loc is None else int(query_start_loc[batch + 1] - query_start_loc[batch])
        num_computed_tokens[req] += query_len - int(num_rejected[batch])


@host_kernel
def post_update_num_computed_tokens(
    grid: Grid,
    idx_mapping: torch.Tensor,
    num_computed_tokens: torch.Tensor,
    query_start_loc: torch.Tensor,
) -> None:
    """Advance the count of computed tokens by what was scheduled."""
    for batch, (start, end) in enumerate(spans(query_start_loc, grid[0])):
        num_computed_tokens[int(idx_mapping[batch])] += end - start


@host_kernel
def expand_idx_mapping(
    grid: Grid,
    idx_mapping: torch.Tensor,
    expanded_idx_mapping: torch.Tensor,
    expanded_local_pos: torch.Tensor,
    cu_num_logits: torch.Tensor,
    **meta: int,
) -> None:
    """For each row of logits: the request it belongs to, and its place within that request."""
    for batch, (first, last) in enumerate(spans(cu_num_logits, grid[0])):
        expanded_idx_mapping[first:last] = idx_mapping[batch]
        expanded_local_pos[first:last] = torch.arange(last - first, dtype=expanded_local_pos.dtype)


KERNELS: dict[str, Any] = {
    "_prepare_prefill_inputs_kernel": prepare_prefill_inputs,
    "_prepare_pos_seq_lens_kernel": prepare_pos_seq_lens,
    "_combine_sampled_and_draft_tokens_kernel": combine_sampled_and_draft_tokens,
    "_get_num_sampled_and_rejected_kernel": get_num_sampled_and_rejected,
    "_post_update_kernel": post_update,
    "_post_update_num_computed_tokens_kernel": post_update_num_computed_tokens,
    "_expand_idx_mapping_kernel": expand_idx_mapping,
}
