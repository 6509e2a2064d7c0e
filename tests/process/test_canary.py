"""P1: a patient's words, in every place of a request and on every path, turn up in the answer they belong to only."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.canary import CANARY
from tests.server import ServerProcess

KEY = f"{CANARY}-{'k' * 32}"
OPTIONS = [f"{CANARY} yes", f"{CANARY} no"]
QUESTION = {
    "title": f"Is it {CANARY}?",
    "description": CANARY,
    "enum": OPTIONS,
    "x-option-descriptions": {OPTIONS[0]: CANARY},
}
RUBRIC = {"type": "object", "title": CANARY, "description": CANARY, "properties": {CANARY: QUESTION}}
GOOD: dict[str, Any] = {
    "state": [{"role": CANARY, "content": f"{CANARY} has a headache."}],
    "rubric": RUBRIC,
    "instructions": CANARY,
}
NOUL = {"type": "noul", "instructions": CANARY, "criteria": {"true": {CANARY: [CANARY]}}}
SYSTEM_ONE: dict[str, Any] = {"model": "jev-latest", "state": CANARY, "questions": {CANARY: NOUL}}
DECISIONS: dict[str, Any] = {
    "model": "gpt-6-luna",
    "input": [{"role": "user", "content": CANARY}],
    "questions": [{"type": "predicate", "name": CANARY, "instructions": CANARY}],
    "safety_identifier": CANARY,
}
# What takes long enough for a deadline, or a death, to come first.
LONG: dict[str, Any] = {
    "state": f"{CANARY} " * 1000,
    "rubric": {"type": "object", "properties": {f"{CANARY}{n}": QUESTION for n in range(16)}},
    "policy": {"layout": "isolated", "entropy_threshold": 0},
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A real service at its most talkative, in an environment that asks vLLM for more."""
    (tmp_path / "tmp").mkdir()
    environment = {
        "DECIDE_DTYPE": "float32",
        "DECIDE_LOG_LEVEL": "DEBUG",
        "DECIDE_API_KEYS": f"clinic:{KEY}",
        "VLLM_LOGGING_LEVEL": "DEBUG",
        "VLLM_TRACE_FUNCTION": "0",
        "TMPDIR": str(tmp_path / "tmp"),
    }
    with ServerProcess(tmp_path / "log", **environment) as server:
        server.wait_until_ready()
        yield server


def refusals(server: ServerProcess) -> dict[int, list[httpx.Response]]:
    """A request for every way to be refused, by the status that it should get."""

    def send(method: str = "POST", path: str = "/decide", **options: Any) -> httpx.Response:
        headers = {
            "authorization": f"Bearer {KEY}",
            "x-request-id": CANARY,
            "x-a": CANARY,
            **options.pop("headers", {}),
        }
        return httpx.request(method, f"{server.url}{path}", headers=headers, timeout=60, **options)

    json_type = {"content-type": "application/json"}
    asked = {**SYSTEM_ONE, "questions": {CANARY: {**NOUL, "type": CANARY}}}
    return {
        400: [
            *(
                send(content=text, headers=json_type)
                for text in (CANARY, f'{{"state": "{CANARY}', f'["{CANARY}\\ud800"]')
            ),
            send(path="/v1/systemone", json={**SYSTEM_ONE, "model": CANARY}),
            send(path="/v1/decisions", json={**DECISIONS, CANARY: CANARY}),
            send(path="/v1/decisions", json={**DECISIONS, "input": [{"role": CANARY, "content": CANARY}]}),
        ],
        401: [send(json=GOOD, headers={"authorization": f"Bearer {CANARY}"})],
        404: [
            send(path="/v1/decisions", json={**DECISIONS, "model": CANARY}),
            send("GET", f"/{CANARY}?{CANARY}={CANARY}"),
            send(path=f"/decide/{CANARY}", json=GOOD),
        ],
        405: [send("PUT", f"/decide?{CANARY}", json=GOOD)],
        413: [send(content=f'"{CANARY * 100_000}"', headers=json_type)],
        415: [send(content=CANARY, headers={"content-type": f"text/{CANARY}"})],
        422: [
            send(json={**GOOD, CANARY: CANARY}),
            send(json={**GOOD, "rubric": {"type": CANARY, "enum": [CANARY], "$ref": CANARY}}),
            send(json={**GOOD, "state": f"{CANARY} " * 10_000}),
            send(path="/rubrics/check", json={**GOOD, "policy": {"order": CANARY}}),
            send(path="/v1/systemone", json=asked),
            send(path="/v1/systemone", json={**SYSTEM_ONE, "questions": {CANARY: {**NOUL, "instructions": 1}}}),
        ],
        504: [send(json={**LONG, "policy": {**LONG["policy"], "deadline_ms": 1}})],
    }


@pytest.mark.engine
def test_no_text_of_a_request_leaks(server: ServerProcess, tmp_path: Path) -> None:
    """P1, P3: not in output, in metrics, in refusals, in temporary files or in names of shared memory."""
    with httpx.Client(base_url=server.url, headers={"authorization": f"Bearer {KEY}"}, timeout=60) as client:
        answer = client.post("/decide", json=GOOD)
        assert (answer.status_code, answer.json()["answers"].keys()) == (200, {CANARY})
        assert client.post("/rubrics/check", json=GOOD).status_code == 200
        assert client.post("/v1/systemone", json=SYSTEM_ONE).status_code == 200
        assert client.post("/v1/decisions", json=DECISIONS).status_code == 200
        for status, refused in refusals(server).items():
            for response in refused:
                assert response.status_code == status
                assert CANARY not in _without_places(response) + str(response.headers)
        segments = list(map(str, server.shared_memory()))
        with ThreadPoolExecutor(4) as callers:
            dying = [callers.submit(client.post, "/decide", json={**LONG, "state": f"{CANARY} {n}"}) for n in range(4)]
            server.wait_for(lambda: "decide_inflight 4.0" in client.get("/metrics").text, 30)
            scraped = client.get("/metrics").text
            next(one for one in server.engine_processes() if "EngineCore" in " ".join(one.cmdline())).kill()
            assert {future.result().status_code for future in dying} <= {200, 503}
    assert server.running.wait(30) == 1
    left = [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()]
    everything = [server.log.read_text(errors="replace"), scraped, *segments, *map(str, left)]
    everything += [path.read_bytes().decode(errors="replace") for path in left]
    assert len(everything[0].splitlines()) > 20  # it was talkative
    assert not [text for text in everything if CANARY in text]


def _without_places(response: httpx.Response) -> str:
    """A refusal without its pointers, which are made of the caller's own keys."""
    document = response.json()
    for name, place in (("errors", "pointer"), ("detail", "loc")):
        if isinstance(document.get(name), list):
            document[name] = [{**one, place: ""} for one in document[name]]
    if "error" in document:
        document["error"]["param"] = ""
    return json.dumps(document)
