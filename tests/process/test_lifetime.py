"""From start to end of the process: what it answers meanwhile, how it exits, what it leaves behind."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.cases import HEADACHE
from tests.server import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A real server of this test's own."""
    with ServerProcess(tmp_path / "log", DECIDE_DTYPE="float32") as server:
        yield server


@pytest.mark.engine
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)])
def test_no_process_outlives_the_server(server: ServerProcess, number: signal.Signals, exit_code: int) -> None:
    """R9, R14: however the server ends, 30 s later nothing of the engine is left, its shared memory included."""
    server.wait_until_ready()
    segments = server.shared_memory()
    assert segments
    assert len(server.engine_processes()) == 2
    assert server.decide(HEADACHE).status_code == 200
    assert server.stop(number) == exit_code
    assert server.survivors() == []
    assert [segment for segment in segments if segment.exists()] == []


@pytest.mark.engine
def test_sigkill_while_loading(server: ServerProcess) -> None:
    """R14: an EngineCore whose owner dies while it starts does not wait for it."""
    server.wait_for(lambda: any("spawn_main" in name for name in server.command_lines()), 60)
    assert server.stop(signal.SIGKILL) == -9
    assert server.survivors() == []


@pytest.mark.engine
def test_sigterm_while_loading(server: ServerProcess) -> None:
    """R11, R12: before it is ready every answer is 503, and a SIGTERM then leaves nothing either."""
    server.wait_for(lambda: server.health_status() == 503, 60)
    refused = server.decide(HEADACHE)
    assert (refused.status_code, refused.json()["type"]) == (503, "urn:onestep:problem:starting")
    assert "retry-after" in refused.headers
    server.wait_for(lambda: len(server.engine_processes()) >= 1, 60)
    assert server.stop(signal.SIGTERM) == 0
    assert server.survivors() == []


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"DECIDE_PORT": "none"}, "DECIDE_PORT must be an integer from 1 to 65535"),
        ({"DECIDE_PROT": "8000"}, "DECIDE_PROT is not a setting of this version"),
        ({"DECIDE_MODEL": "/nowhere/at/all"}, "DECIDE_MODEL is neither a folder nor a repository"),
    ],
    ids=["bad value", "unknown setting", "no checkpoint"],
)
def test_could_not_start(tmp_path: Path, environment: dict[str, str], reason: str) -> None:
    """R9: exit code 3 and one sentence that says what to change."""
    with ServerProcess(tmp_path / "log", **environment) as server:
        assert server.running.wait(60) == 3
    assert reason in server.log.read_text()


def test_port_in_use(tmp_path: Path) -> None:
    """R9: a port that is taken is a failed start."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with ServerProcess(tmp_path / "log", DECIDE_ENGINE="fake", DECIDE_PORT=port) as server:
            assert server.running.wait(60) == 3
    assert "cannot listen" in server.log.read_text()


def test_accepted_requests_finish(tmp_path: Path) -> None:
    """R8, in part: a connection that is open when SIGTERM arrives does not keep the process from ending cleanly."""
    with ServerProcess(tmp_path / "log", DECIDE_ENGINE="fake") as server:
        server.wait_until_ready()
        with httpx.Client(base_url=server.url) as client:
            assert client.post("/decide", json=HEADACHE).status_code == 200
            assert server.stop(signal.SIGTERM) == 0
    assert not psutil.pid_exists(server.running.pid)
