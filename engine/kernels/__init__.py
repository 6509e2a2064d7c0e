"""Model Runner V2's bookkeeping kernels on the host, for CPUs without triton-cpu.

A diffusion read reaches thirteen Triton kernels, each a few lines of index arithmetic over at most `max_num_seqs` rows.
`REPLACEMENTS` maps each vLLM module to its kernel names and the object to put in their place; `engine.compat` does the
putting. vLLM pull request 55847 proposes the same upstream.
"""

from __future__ import annotations

from typing import Any

from engine.kernels import block_table, buffer, input_batch, logprob

REPLACEMENTS: dict[str, dict[str, Any]] = {
    "vllm.v1.worker.gpu.input_batch": input_batch.KERNELS,
    "vllm.v1.worker.gpu.block_table": block_table.KERNELS,
    "vllm.v1.worker.gpu.buffer_utils": buffer.KERNELS,
    "vllm.v1.worker.gpu.sample.logprob": logprob.KERNELS,
}
