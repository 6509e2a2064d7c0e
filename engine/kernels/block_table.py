"""Host versions of the kernels of `vllm/v1/worker/gpu/block_table.py` (0.32.0).

Block tables reach these kernels as tables of raw data pointers, one a KV cache group, with the row stride of each.
"""

from __future__ import annotations

from typing import Any

import torch

from engine.kernels.launch import Grid, host_kernel, int32_at, spans


@host_kernel
def gather_block_tables(
    grid: Grid,
    batch_idx_to_req_idx: torch.Tensor,
    src_block_table_ptrs: torch.Tensor,
    dst_block_table_ptrs: torch.Tensor,
    block_table_strides: torch.Tensor,
    num_blocks: torch.Tensor,
    num_blocks_stride: int,
    num_reqs: int,
    **meta: int,
) -> None:
    """Copy each request's block ids into this step's table; rows past the batch are zeroed."""
    num_groups, num_rows = grid
    reqs = batch_idx_to_req_idx.tolist()
    for group in range(num_groups):
        stride = int(block_table_strides[group])
        source, target = int(src_block_table_ptrs[group]), int(dst_block_table_ptrs[group])
        for row in range(min(num_rows, num_reqs)):
            count = int(num_blocks[group, reqs[row]])
            int32_at(target, row * stride, count)[:] = int32_at(source, reqs[row] * stride, count)
        int32_at(target, num_reqs * stride, (num_rows - num_reqs) * stride)[:] = 0


@host_kernel
def compute_slot_mappings(
    grid: Grid,
    max_num_tokens: int,
    idx_mapping: torch.Tensor,
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
    block_table_ptrs: torch.Tensor,
    block_table_strides: torch.Tensor,
    block_sizes: torch.Tensor,
    slot_mapping_enabled: torch.Tensor,
    dcp_sharded: torch.Tensor,
    slot_mappings: torch.Tensor,
    slot_mappings_stride: int,
    cp_rank: int,
    CP_SIZE: int,
    CP_INTERLEAVE: int,
    PAD_ID: int,
    **meta: int,
) -> None:
    """The KV slot of every scheduled token; `PAD_ID` where a token owns none."""
    if CP_SIZE != 1:
        raise NotImplementedError("context parallelism needs vLLM's Triton kernels; set context parallel size 1")
    num_groups, num_reqs = grid[0], grid[1] - 1  # the last program of the Triton grid only pads
    batch_spans = spans(query_start_loc, num_reqs)
    end_of_batch = int(query_start_loc[num_reqs])
    for group in range(num_groups):
        slots = slot_mappings[group].numpy()
        slots[end_of_batch:max_num_tokens] = PAD_ID
        table, stride, block_size = (
            int(block_table_ptrs[group]),
            int(block_table_strides[group]),
            int(block_sizes[group]),
        )
        for batch, (start, end) in enumerate(batch_spans):
            req = int(idx_mapping[batch])
            if req < 0 or not bool(slot_mapping_enabled[group]):
                slots[start:end] = PAD_ID
                continue
            token_positions = positions[start:end].numpy()
            blocks = int32_at(table, req * stride, stride)[token_positions // block_size]
            slots[start:end] = blocks.astype("int64") * block_size + token_positions % block_size


KERNELS: dict[str, Any] = {
    "_gather_block_tables_kernel": gather_block_tables,
    "_compute_slot_mappings_kernel": compute_slot_mappings,
}
