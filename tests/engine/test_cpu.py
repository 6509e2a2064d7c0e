"""What the CPU can do, and the number format that follows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from engine.cpu import KERNEL_FEATURES, ModelThreads, choose_dtype, cpu_features, model_threads, usable_cpus

GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A machine, a checkpoint, and the format to compute in."""

    id: str
    features: tuple[str, ...]
    weight_bytes: int
    free_bytes: int
    expected: str


CASES = [
    Case(id="AMX", features=("avx2", "amx_bf16"), weight_bytes=GIB, free_bytes=99 * GIB, expected="bfloat16"),
    Case(id="AVX-512", features=("avx512_bf16",), weight_bytes=GIB, free_bytes=99 * GIB, expected="bfloat16"),
    Case(id="no BF16", features=("avx2", "avx512f"), weight_bytes=GIB, free_bytes=99 * GIB, expected="float32"),
    Case(id="nothing known", features=(), weight_bytes=GIB, free_bytes=99 * GIB, expected="float32"),
    Case(id="just fits", features=("avx2",), weight_bytes=7 * GIB, free_bytes=20 * GIB, expected="float32"),
    Case(id="just not", features=("avx2",), weight_bytes=7 * GIB + 1, free_bytes=20 * GIB, expected="bfloat16"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_choose_dtype(case: Case) -> None:
    """bfloat16 where the CPU has instructions for it, or where float32 weights leave no room for the rest."""
    assert choose_dtype(case.features, case.weight_bytes, case.free_bytes) == case.expected


@pytest.mark.parametrize(("free_bytes", "expected"), [(10 * GIB, "float32"), (2 * GIB, "bfloat16")])
def test_free_memory_is_asked_for(monkeypatch: pytest.MonkeyPatch, free_bytes: int, expected: str) -> None:
    """Unless it is given, what counts is the memory that is available now."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free_bytes))
    assert choose_dtype((), GIB) == expected


CPUINFO = """\
processor\t: 0
model name\t: a CPU with avx512f in its name
flags\t\t: fpu amx_tile avx avx2 avx512_bf16x sse2
bugs\t\t: spectre_v1 avx512_vnni
"""


def test_cpu_features(tmp_path: Path) -> None:
    """Whole flags of the flags line only, in a fixed order: the fingerprint has it from here."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(CPUINFO)
    assert cpu_features(cpuinfo) == ("avx2", "amx_tile")


def test_a_cpu_without_flags(tmp_path: Path) -> None:
    """An ARM machine's file has no such line."""
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nFeatures\t: fp asimd\n")
    assert cpu_features(cpuinfo) == ()


def test_this_cpu() -> None:
    """The file is where it is looked for."""
    assert set(cpu_features()) <= set(KERNEL_FEATURES)


def test_usable_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run on some of the machine's CPUs only."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 6})
    assert usable_cpus() == {1, 5, 6}


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """A machine of two memory nodes with five cores each: CPU n and n + 10 are one core, even ones are node 0's."""
    for cpu in range(20):
        folder = tmp_path / f"cpu{cpu}"
        (folder / "topology").mkdir(parents=True)
        (folder / f"node{cpu % 2}").mkdir()
        (folder / "topology" / "thread_siblings_list").write_text(f"{cpu % 10},{cpu % 10 + 10}\n")
    return tmp_path


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """CPUs a process may run on, how many threads the model gets, and their cores where they are pinned."""

    id: str
    cpus: set[int]
    count: int
    cores: set[int]


MACHINES = [
    Machine(id="one CPU", cpus={3}, count=1, cores=set()),
    Machine(id="two CPUs", cpus={3, 4}, count=1, cores=set()),
    Machine(id="small", cpus=set(range(7)), count=6, cores=set()),
    Machine(id="whole", cpus=set(range(20)), count=4, cores={0, 2, 4, 6}),
    Machine(id="without hyper-threads", cpus=set(range(10)), count=4, cores={0, 2, 4, 6}),
    Machine(id="second node", cpus={1, 3, 5, 7, 11, 13, 15, 17}, count=3, cores={1, 3, 5}),
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.id)
def test_model_threads(sysfs: Path, machine: Machine) -> None:
    """All but one CPU; on larger machines, a pinned thread on each core but one of the first node that may be used."""
    threads = model_threads(machine.cpus, sysfs)
    assert threads.count == machine.count
    assert set(threads.pinned_cpus) <= machine.cpus
    assert {cpu % 10 for cpu in threads.pinned_cpus} == machine.cores
    assert len(threads.pinned_cpus) in {0, threads.count}


def test_a_machine_without_memory_nodes(sysfs: Path) -> None:
    """As some virtual machines are: all of it is one."""
    for node in sysfs.glob("cpu*/node*"):
        node.rmdir()
    assert model_threads(range(10), sysfs) == ModelThreads(count=9, pinned_cpus=tuple(range(9)))


def test_there_is_always_a_thread(sysfs: Path) -> None:
    """Even where the first node has no core to spare."""
    assert model_threads({0, 1, 3, 5, 7, 11, 13, 15}, sysfs).count >= 1


def test_the_threads_of_this_machine() -> None:
    """The files are where they are looked for."""
    assert 1 <= model_threads(usable_cpus()).count <= len(usable_cpus())
