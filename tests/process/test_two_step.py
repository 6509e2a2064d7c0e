"""The whole service with fused reads off: vLLM's own path, twice the engine steps, the same probabilities."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.cases import REQUESTS
from tests.server import ServerProcess

pytestmark = pytest.mark.engine


def test_fused_and_two_step_services_agree(real_server: ServerProcess, tmp_path: Path) -> None:
    """On every probability of every request; and each says which it is, in `/health` and in its fingerprint."""
    with ServerProcess(tmp_path / "log", DECIDE_DTYPE="float32", DECIDE_FUSED_READS="0") as two_step:
        two_step.wait_until_ready()
        for request in REQUESTS:
            one, other = (server.decide(request).json() for server in (real_server, two_step))
            assert (one["usage"]["engine_steps"], other["usage"]["engine_steps"]) == (1, 2)
            assert one["fingerprint"] != other["fingerprint"]
            for key, answer in one["answers"].items():
                assert other["answers"][key]["probabilities"] == pytest.approx(answer["probabilities"], abs=1e-4)
        fused, unfused = (httpx.get(f"{server.url}/health").json() for server in (real_server, two_step))
        assert (fused["fused_reads"], unfused["fused_reads"]) == (True, False)
        page = httpx.get(f"{two_step.url}/metrics").text
    assert f'decide_reads_total{{path="two_step"}} {float(len(REQUESTS))}' in page
    assert 'decide_reads_total{path="fused"} 0.0' in page
