"""The engine's processes are killed and stood still under callers who wait."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import pytest

from tests.cases import HEADACHE
from tests.server import ServerProcess

pytestmark = pytest.mark.engine

CALLERS = 4


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    """Who asks while the test does harm."""
    with ThreadPoolExecutor(CALLERS) as callers:
        yield callers


def ask_until_refused(server: ServerProcess) -> list[int]:
    """Statuses of one request after another, until one is not 200 or nobody listens."""
    statuses = []
    while True:
        try:
            statuses.append(server.decide(HEADACHE).status_code)
        except httpx.TransportError:
            return statuses
        if statuses[-1] != 200:
            return statuses


def core_and_worker(server: ServerProcess) -> tuple[psutil.Process, psutil.Process]:
    """vLLM's scheduler process, and the one that has the model."""
    found = {"EngineCore" in " ".join(process.cmdline()): process for process in server.engine_processes()}
    return found[True], found[False]


@pytest.mark.parametrize("killed", ["core", "worker"])
def test_a_killed_engine(tmp_path: Path, callers: ThreadPoolExecutor, killed: str) -> None:
    """R13: every caller is answered, the last with 503; the process says so by its exit code and leaves nothing."""
    with ServerProcess(tmp_path / "log", DECIDE_DTYPE="float32") as server:
        server.wait_until_ready()
        segments = server.shared_memory()
        asking = [callers.submit(ask_until_refused, server) for _ in range(CALLERS)]
        core, worker = core_and_worker(server)
        (core if killed == "core" else worker).kill()
        assert server.running.wait(30) == 1
        for statuses in (future.result(timeout=30) for future in asking):
            assert set(statuses[:-1]) <= {200}
            assert statuses[-1:] in ([503], [200])  # 200: it was answered last, and then nobody listened
        assert any(future.result()[-1:] == [503] for future in asking)
        assert server.survivors() == []
        assert [segment for segment in segments if segment.exists()] == []


def test_an_engine_that_stands_still(tmp_path: Path, callers: ThreadPoolExecutor) -> None:
    """R6, R13, R15: for a while, and everybody is answered in the end; for ever, and it is given up."""
    with ServerProcess(
        tmp_path / "log", DECIDE_DTYPE="float32", DECIDE_STALL_SECONDS="10", DECIDE_DEADLINE_SECONDS="20"
    ) as server:
        server.wait_until_ready()
        processes = core_and_worker(server)
        waiting = _asked_while_stopped(server, callers, processes, seconds=5.0)
        for process in processes:
            process.resume()
        assert [future.result(timeout=30).status_code for future in waiting] == [200] * CALLERS
        assert server.health_status() == 200
        waiting = _asked_while_stopped(server, callers, processes, seconds=0.0)
        assert server.running.wait(60) == 1
        assert {future.result(timeout=30).status_code for future in waiting} <= {503, 504}
        assert server.survivors() == []


def _asked_while_stopped(
    server: ServerProcess,
    callers: ThreadPoolExecutor,
    processes: tuple[psutil.Process, ...],
    *,
    seconds: float,
) -> list[Future[httpx.Response]]:
    """Requests whose engine has stood still for so long; `/health` answers meanwhile."""
    for process in processes:
        process.send_signal(signal.SIGSTOP)
    asked = [callers.submit(server.decide, HEADACHE) for _ in range(CALLERS)]
    assert server.health_status() == 200
    with pytest.raises(TimeoutError):
        asked[0].result(timeout=max(seconds, 0.5))
    return asked
