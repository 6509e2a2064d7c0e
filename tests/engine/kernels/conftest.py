"""vLLM's modules on both sides: with the host kernels, and with Triton's own source interpreted."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.kernels.comparison import Sides
from tests.engine.kernels.interpreter import interpreted

PACKAGE = "vllm.v1.worker.gpu"
# What the other two modules take from `buffer_utils`.
BUFFER_NAMES = ("StagedWriteTensor", "FusedStagedWriter", "UvaBackedTensor", "_load_ptr")


def _sides(module: str, **replaced: Any) -> Sides:
    name = f"{PACKAGE}.{module}"
    return Sides(host=importlib.import_module(name), oracle=interpreted(name, **replaced))


def _buffer_names(buffer_utils: Sides) -> dict[str, Any]:
    return {name: getattr(buffer_utils.oracle, name) for name in BUFFER_NAMES}


@pytest.fixture(scope="session")
def input_batch(applied: tuple[str, ...]) -> Sides:
    """`input_batch.py`."""
    assert "host-kernels" in applied
    return _sides("input_batch")


@pytest.fixture(scope="session")
def buffer_utils(applied: tuple[str, ...]) -> Iterator[Sides]:
    """`buffer_utils.py`, with the buffers that vLLM's CPU worker puts into it (`vllm/v1/worker/cpu/shm.py`)."""
    assert "host-kernels" in applied
    cpu_buffers = importlib.import_module("vllm.v1.worker.cpu.buffer_utils").UvaBuffer
    sides = _sides("buffer_utils", UvaBuffer=cpu_buffers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sides.host, "UvaBuffer", cpu_buffers)
        yield sides


@pytest.fixture(scope="session")
def block_table(buffer_utils: Sides) -> Sides:
    """`block_table.py`. The oracle's tables of pointers hold the tensors themselves, so that it knows their bounds."""
    sides = _sides("block_table", **_buffer_names(buffer_utils))
    sides.oracle.BlockTables._make_ptr_tensor = lambda _, tensors: list(tensors)
    return sides


@pytest.fixture(scope="session")
def logprob(buffer_utils: Sides) -> Sides:
    """`sample/logprob.py`."""
    return _sides("sample.logprob", **_buffer_names(buffer_utils))
