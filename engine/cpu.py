"""What this CPU can do, and the number format that follows from it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

# Only features that change which kernels vLLM and oneDNN run, as /proc/cpuinfo names them.
KERNEL_FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "amx_tile")
BFLOAT16_FEATURES = frozenset({"avx512_bf16", "amx_bf16"})
# Weights may take this share of free memory; the rest is for the KV cache, activations and the service.
WEIGHTS_MEMORY_SHARE = 0.7


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """The kernel features of this CPU, in the order of `KERNEL_FEATURES`."""
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "").split()
    return tuple(feature for feature in KERNEL_FEATURES if feature in flags)


def cpu_count() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


def choose_dtype(features: tuple[str, ...], bfloat16_weight_bytes: int, free_bytes: int | None = None) -> str:
    """What `auto` means here: bfloat16 where the CPU computes in it, else float32 if the weights fit.

    On a CPU without BF16 instructions float32 is both faster and exact; only memory speaks for bfloat16.
    """
    if BFLOAT16_FEATURES & set(features):
        return "bfloat16"
    free = psutil.virtual_memory().available if free_bytes is None else free_bytes
    return "float32" if 2 * bfloat16_weight_bytes <= WEIGHTS_MEMORY_SHARE * free else "bfloat16"
