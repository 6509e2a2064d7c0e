"""Fixtures of the plugin's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psutil
import pytest

from tests.engine.children import PATIENCE_SECONDS, Child


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
