"""What may come back, whatever was sent."""

from __future__ import annotations

import httpx
import jsonschema

from tests.app.service import request_body
from tests.contract.test_problem_shape import FIELDS
from tests.server import ServerProcess

# Nothing else; no 500, and from a service that is ready no 503. 504: deadlines are among what is sent.
ANSWERED = frozenset({200, 400, 401, 403, 404, 405, 408, 413, 415, 422, 429, 431, 504})
# What a refusal is made of in other protocols.
PROTOCOL_FIELDS = {"/v1/systemone": {"detail"}, "/v1/models": {"detail"}, "/v1/decisions": {"error"}}
GOOD = request_body()


def assert_promised(response: httpx.Response) -> None:
    """S6, C1: a status that is promised, and for every refusal the one document, or that of the protocol."""
    assert response.status_code in ANSWERED, response.text
    assert response.headers["x-request-id"]
    if response.status_code == 200:
        return
    document, path = response.json(), response.request.url.path
    if path in PROTOCOL_FIELDS:
        assert document.keys() == PROTOCOL_FIELDS[path]
        return
    assert response.headers["content-type"] == "application/problem+json"
    assert document.keys() == FIELDS
    assert document["status"] == response.status_code
    assert document["instance"] == f"urn:onestep:request:{response.headers['x-request-id']}"


def assert_goes_on(client: httpx.Client) -> None:
    """S6: the next good request is answered."""
    good = client.post("/decide", json=GOOD)
    assert good.status_code == 200, good.text
    jsonschema.validate(good.json()["decision"], GOOD["rubric"])


def assert_at_rest(server: ServerProcess) -> None:
    """Nothing that was sent is still being worked on, or died of it."""
    gauges = ("decide_inflight", "vllm:num_requests_running", "vllm:num_requests_waiting")
    server.wait_for(lambda: all(server.metric(name) == 0 for name in gauges), 30)
    assert server.health_status() == 200
