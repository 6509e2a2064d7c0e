"""Callers in a crowd, and what a service has in use after them: short forms of `make soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.client import quantile
from bench.load import PROBED, load_and_probe
from bench.soak import soak
from tests.cases import HEADACHE
from tests.server import ServerProcess


def test_quantiles() -> None:
    """Nearest rank, and nothing of nothing."""
    assert [quantile([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]
    assert quantile([], 0.95) == 0.0


async def test_a_crowd_is_answered_or_turned_away(tmp_path: Path) -> None:
    """R1, R3: ten callers for every permit get 200 or 429 and nothing else; probes are answered every time."""
    settings = {"DECIDE_ENGINE": "fake", "DECIDE_MAX_INFLIGHT": "2"}
    with ServerProcess(tmp_path / "log", **settings) as server:
        server.wait_until_ready()
        crowd, probes = await load_and_probe(server.url, clients=20, seconds=3)
        assert crowd.statuses.keys() <= {200, 429}
        assert crowd.statuses[200] == len(crowd.seconds) > 0
        assert all(len(probes[path]) > 3 for path in PROBED)


async def test_a_service_is_itself_again_after_a_crowd(tmp_path: Path) -> None:
    """R7: the very next requests are all answered, one after another. (How soon: `make soak` measures it.)"""
    settings = {"DECIDE_ENGINE": "fake", "DECIDE_MAX_INFLIGHT": "2"}
    with ServerProcess(tmp_path / "log", **settings) as server:
        server.wait_until_ready()
        crowd, _ = await load_and_probe(server.url, clients=20, seconds=2)
        assert crowd.statuses[429] > 0
        assert [server.decide(HEADACHE).status_code for _ in range(20)] == [200] * 20


@pytest.mark.engine
async def test_a_service_is_after_a_load_what_it_was(real_server: ServerProcess) -> None:
    """R16: files, threads, processes, KV blocks and permits."""
    found = await soak(real_server.url, clients=3, parts=2, part_seconds=3.0, warm_up_seconds=3.0, rest_seconds=1.0)
    (before, _), *_, (after, answered) = found
    assert answered > 0
    assert after.files <= before.files + 2
    assert after.threads <= before.threads + 2
    assert (after.processes, after.kv_cache_share, after.inflight) == (before.processes, 0.0, 0.0)
