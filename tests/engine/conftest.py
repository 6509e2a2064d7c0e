"""Fixtures of the plugin's tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest

from tests.engine import mutants
from tests.engine.children import PATIENCE_SECONDS, Child
from tests.engine.running import RunningEngine, engine_settings


@pytest.fixture(scope="session")
def applied() -> tuple[str, ...]:
    """The patch ledger, applied in this process; the names of the patches.

    It imports vLLM, which takes ten seconds and warns: see `pytestmark` in the files that use it.
    """
    from engine.compat import apply_ledger

    return apply_ledger()


@pytest.fixture
def start() -> Iterator[Callable[[str], Child]]:
    """Start a program of `children.py`; it and its children are killed after the test, whatever happens."""
    started: list[psutil.Process] = []

    def start(program: str) -> Child:
        child = Child.start(program)
        own = psutil.Process(child.process.pid)
        started.extend([own, *own.children(recursive=True)])
        return child

    yield start
    for process in started:
        if process.is_running():
            process.kill()
    psutil.wait_procs(started, timeout=PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def fused_engine(checkpoint: Path) -> Iterator[RunningEngine]:
    """The demo checkpoint with fused reads, float32. Tests may send functions to its worker."""
    with mock.patch.dict(os.environ, VLLM_ALLOW_INSECURE_SERIALIZATION="1"), running(checkpoint) as engine:
        yield engine


@pytest.fixture(scope="session")
def two_step_engine(checkpoint: Path) -> Iterator[RunningEngine]:
    """The same on vLLM's own path."""
    with running(checkpoint, fused_reads=False) as engine:
        yield engine


@pytest.fixture
def mutate(fused_engine: RunningEngine) -> Iterator[Callable[[str | None], None]]:
    """Put a fault into the worker, with an empty prefix cache before and after; it is gone after the test."""

    def mutate(name: str | None) -> None:
        fused_engine.in_worker(mutants.install, name)
        fused_engine.forget_prefixes()

    yield mutate
    mutate(None)


def running(checkpoint: Path, **changed: Any) -> RunningEngine:
    """An engine that is not started yet."""
    return RunningEngine(engine_settings(checkpoint, **changed))
