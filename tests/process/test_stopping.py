"""A stop in order, as an orchestrator and its load balancer see it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.cases import HEADACHE
from tests.server import SlowServerProcess


@pytest.fixture
def callers() -> Iterator[ThreadPoolExecutor]:
    """Somebody to ask while the test looks on."""
    with ThreadPoolExecutor(4) as callers:
        yield callers


def test_what_was_accepted_is_answered(tmp_path: Path, callers: ThreadPoolExecutor) -> None:
    """R8, R9: 503 from `/health` and to newcomers at once, on an open port, until the last answer is out; then 0."""
    with SlowServerProcess(tmp_path / "log", SLOW_READ_SECONDS="8", DECIDE_DRAIN_DELAY_SECONDS="0.1") as server:
        server.wait_until_ready()
        under_way = [callers.submit(server.decide, HEADACHE) for _ in range(3)]
        server.wait_for(lambda: server.metric("decide_inflight ") == 3, 30)
        server.running.send_signal(signal.SIGTERM)
        server.wait_for_status(503, 30)
        assert httpx.get(f"{server.url}/health", timeout=5).json()["phase"] == "draining"
        refused = server.decide(HEADACHE)
        assert (refused.status_code, refused.json()["type"]) == (503, "urn:onestep:problem:draining")
        assert server.metric("decide_inflight ") == 3
        assert [answer.result().status_code for answer in under_way] == [200, 200, 200]
        assert server.running.wait(60) == 0


def test_the_port_stays_open_for_the_delay(tmp_path: Path) -> None:
    """R8: with nothing to finish; afterwards nobody listens."""
    with SlowServerProcess(tmp_path / "log", SLOW_READ_SECONDS="0", DECIDE_DRAIN_DELAY_SECONDS="5") as server:
        server.wait_until_ready()
        server.running.send_signal(signal.SIGTERM)
        server.wait_for_status(503, 30)
        assert server.health_status() == 503
        assert server.running.wait(60) == 0
        assert server.health_status() is None


def test_a_second_signal_stops_at_once(tmp_path: Path, callers: ThreadPoolExecutor) -> None:
    """R9: what is under way is cut off, and the exit code says so."""
    with SlowServerProcess(tmp_path / "log", SLOW_READ_SECONDS="20") as server:
        server.wait_until_ready()
        under_way = callers.submit(server.decide, HEADACHE)
        server.wait_for(lambda: server.metric("decide_inflight ") == 1, 30)
        for status in (503, None):
            server.running.send_signal(signal.SIGTERM)
            server.wait_for_status(status, 30)
        assert server.running.wait(15) == 2
        with pytest.raises(httpx.TransportError):
            under_way.result()


def test_a_caller_that_leaves_is_counted(tmp_path: Path) -> None:
    """R4: its permit is free long before its read would have ended."""
    with SlowServerProcess(tmp_path / "log", SLOW_READ_SECONDS="20", DECIDE_MAX_INFLIGHT="1") as server:
        server.wait_until_ready()
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/decide", json=HEADACHE, timeout=httpx.Timeout(30, read=0.5))
        server.wait_for(lambda: server.metric("decide_inflight ") == 0, 5)
        assert server.metric('decide_requests_total{route="/decide",status="499"}') == 1
        assert server.stop(signal.SIGINT) == 0
