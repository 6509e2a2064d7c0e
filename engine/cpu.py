"""What this CPU can do, and the number format and the threads that follow from it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

# Only features that change which kernels vLLM and oneDNN run, as /proc/cpuinfo names them.
KERNEL_FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8", "amx_tile")
BFLOAT16_FEATURES = frozenset({"avx512_bf16", "amx_bf16"})
# Weights may take this share of free memory; the rest is for the KV cache, activations and the service.
WEIGHTS_MEMORY_SHARE = 0.7
# The service and the scheduler need a CPU of their own: model threads that share it wait for each other at every
# barrier (two CPUs: p95 of a read 3 times lower with one model thread than with two).
RESERVED_CPUS = 1
# Below this many CPUs, pinning each thread to a core costs more than it gives.
PINNING_MIN_CPUS = 8


def cpu_features(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """The kernel features of this CPU, in the order of `KERNEL_FEATURES`."""
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "").split()
    return tuple(feature for feature in KERNEL_FEATURES if feature in flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelThreads:
    """The threads the model computes with.

    Attributes:
        pinned_cpus: the CPU of each thread; empty where threads are left to the operating system.
    """

    count: int
    pinned_cpus: tuple[int, ...]


def model_threads(cpus: Iterable[int], sysfs: Path = Path("/sys/devices/system/cpu")) -> ModelThreads:
    """Threads for a process that may run on these CPUs.

    The service and the scheduler keep a CPU of their own. On larger machines there is one thread a physical core of the
    first memory node, as vLLM's own `auto` has it (vllm/utils/ompmultiprocessing.py); chosen here, so that it is known.
    """
    usable = sorted(cpus)
    if len(usable) < PINNING_MIN_CPUS:
        return ModelThreads(count=max(1, len(usable) - RESERVED_CPUS), pinned_cpus=())
    node = _memory_node(sysfs, usable[0])
    cores = {_core(sysfs, cpu): cpu for cpu in usable if _memory_node(sysfs, cpu) == node}
    pinned = tuple(cores.values())
    pinned = pinned[:-RESERVED_CPUS] or pinned
    return ModelThreads(count=len(pinned), pinned_cpus=pinned)


def usable_cpus() -> frozenset[int]:
    """CPUs this process may run on."""
    return frozenset(os.sched_getaffinity(0))


def _memory_node(sysfs: Path, cpu: int) -> str:
    return next((node.name for node in (sysfs / f"cpu{cpu}").glob("node*")), "")


def _core(sysfs: Path, cpu: int) -> str:
    siblings = sysfs / f"cpu{cpu}" / "topology" / "thread_siblings_list"
    return siblings.read_text() if siblings.exists() else str(cpu)


def choose_dtype(features: tuple[str, ...], bfloat16_weight_bytes: int, free_bytes: int | None = None) -> str:
    """What `auto` means here: bfloat16 where the CPU computes in it, else float32 if the weights fit.

    On a CPU without BF16 instructions float32 is both faster and exact; only memory speaks for bfloat16.
    """
    if BFLOAT16_FEATURES & set(features):
        return "bfloat16"
    free = psutil.virtual_memory().available if free_bytes is None else free_bytes
    return "float32" if 2 * bfloat16_weight_bytes <= WEIGHTS_MEMORY_SHARE * free else "bfloat16"
