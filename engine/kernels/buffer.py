"""Host version of the kernel of `vllm/v1/worker/gpu/buffer_utils.py` (0.32.0)."""

from __future__ import annotations

from typing import Any

import torch

from engine.kernels.launch import Grid, host_kernel, int32_at


@host_kernel
def apply_write(
    grid: Grid,
    output: torch.Tensor,
    output_stride: int | torch.Tensor,
    write_indices: torch.Tensor,
    write_starts: torch.Tensor,
    write_contents: torch.Tensor,
    write_cu_lens: torch.Tensor,
    write_group_ids: torch.Tensor | None,
    MULTI_GROUP: bool,
    **meta: int,
) -> None:
    """Apply staged row writes: write i puts its contents at `output[index, start:]`.

    With MULTI_GROUP, `output` is a table of raw int32 pointers and `output_stride` their row strides, one a group.
    """
    edges = [0, *write_cu_lens[: grid[0]].tolist()]
    for write in range(grid[0]):
        contents = write_contents[edges[write] : edges[write + 1]]
        row, start = int(write_indices[write]), int(write_starts[write])
        if MULTI_GROUP:
            assert write_group_ids is not None
            assert isinstance(output_stride, torch.Tensor)
            group = int(write_group_ids[write])
            offset = row * int(output_stride[group]) + start
            int32_at(int(output[group]), offset, len(contents))[:] = contents.numpy()
        else:
            target = output[row:] if output.dim() == 1 else output[row]
            target[start : start + len(contents)] = contents.to(output.dtype)


KERNELS: dict[str, Any] = {"_apply_write_kernel": apply_write}
