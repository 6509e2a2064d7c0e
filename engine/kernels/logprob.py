"""Host versions of the kernels of `vllm/v1/worker/gpu/sample/logprob.py` (0.32.0)."""

from __future__ import annotations

from typing import Any

import torch

from engine.kernels.launch import Grid, host_kernel


@host_kernel
def topk_log_softmax(
    grid: Grid,
    output: torch.Tensor,
    logits: torch.Tensor,
    logits_stride: int,
    topk_ids: torch.Tensor,
    topk_ids_stride: int,
    topk: int,
    vocab_size: int,
    **meta: int,
) -> None:
    """Float32 log-softmax of each row of logits, at the given token ids only."""
    logprobs = logits[: grid[0], :vocab_size].float().log_softmax(dim=-1)
    output.copy_(logprobs.gather(1, topk_ids[: grid[0], :topk].long()))


@host_kernel
def ranks(
    grid: Grid,
    output: torch.Tensor,
    logits: torch.Tensor,
    logits_stride: int,
    token_ids: torch.Tensor,
    vocab_size: int,
    **meta: int,
) -> None:
    """1-based rank of the given token in each row, ties counted against it."""
    rows = logits[: grid[0], :vocab_size]
    chosen = rows.gather(1, token_ids.long().view(-1, 1))
    output.copy_((rows >= chosen).sum(dim=1))


@host_kernel
def fill_logprob_token_ids(
    grid: Grid,
    out_token_ids: torch.Tensor,
    out_token_ids_stride: int,
    out_valid_mask: torch.Tensor,
    out_valid_mask_stride: int,
    sampled_token_ids: torch.Tensor,
    topk_indices: torch.Tensor,
    topk_indices_stride: int,
    expanded_idx_mapping: torch.Tensor,
    num_per_req_token_ids: torch.Tensor,
    per_req_token_ids: torch.Tensor,
    per_req_token_ids_stride: int,
    NUM_TOPK: int,
    **meta: int,
) -> None:
    """Columns to report per row: the sampled token, then the request's own ids if it named any, else the top k."""
    for row in range(grid[0]):
        out_token_ids[row, 0] = sampled_token_ids[row]
        req = int(expanded_idx_mapping[row])
        count = int(num_per_req_token_ids[req])
        if count > 0:
            columns = per_req_token_ids[req, :count]
        else:  # without a top k, what stands for its table has no row for every row of logits
            columns = topk_indices[row, :NUM_TOPK] if NUM_TOPK else topk_indices.new_empty(0)
        out_token_ids[row, 1 : 1 + len(columns)] = columns.to(out_token_ids.dtype)
        out_valid_mask[row, : 1 + len(columns)] = True


KERNELS: dict[str, Any] = {
    "_topk_log_softmax_kernel": topk_log_softmax,
    "_ranks_kernel": ranks,
    "_fill_logprob_token_ids_kernel": fill_logprob_token_ids,
}
