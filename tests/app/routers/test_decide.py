"""POST /decide."""

from __future__ import annotations

import asyncio
import json
import math
import re
from typing import Any

import httpx
import jsonschema
import pytest
from fastapi import FastAPI

from app.fingerprint import fingerprint
from app.problems import RETRY_AFTER_SECONDS
from app.settings import Settings
from engine.fake import FakeEngine
from engine.protocol import Branch, CanvasSlot, EngineDied, ReadFailed, ReadRequest
from tests.app.canary import CANARY
from tests.app.service import phase_of, request_body, serving, until, until_phase
from tests.cases import HEADACHE, MOOD, PAIN, REFILL, REQUESTS, TOPIC, rubric


def problem_of(response: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    document = response.json()
    assert document["status"] == response.status_code
    return response.status_code, document["type"].removeprefix("urn:onestep:problem:")


async def ask(client: httpx.AsyncClient, **changed: Any) -> httpx.Response:
    """POST a good request with these fields over it."""
    return await client.post("/decide", json=request_body(**changed))


def half_then_halves(_request: ReadRequest, _branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
    """1/2, 1/4, 1/8, ... and the last twice."""
    count = len(slot.label_token_ids)
    return tuple(-math.log(2) * min(i + 1, count - 1) for i in range(count))


GOLDEN_REQUEST = {
    "state": HEADACHE["state"],
    "rubric": rubric(**{"a/b": TOPIC, "pain": {"type": "integer", "minimum": 1, "maximum": 3}, "refill": REFILL}),
    "instructions": "Be strict.",
    "policy": {"seed": 42, "entropy_threshold": 0.9},
}
GOLDEN = {
    "model": "onestep-demo",
    "outcome": "uncertain",
    "decision": {"a/b": "billing", "pain": 1, "refill": True},
    "answers": {
        "a~1b": {
            "value": "billing",
            "outcome": "decided",
            "probability": 0.5,
            "probabilities": {"billing": 0.5, "symptoms": 0.25, "scheduling": 0.125, "pharmacy": 0.125},
            "entropy": 0.875,
            "confidence": (0.5 - 0.25) / (1 - 0.25),
            "margin": 0.25,
            "std_error": None,
            "agreement": 1.0,
            "reads": 1,
            "label_mass": None,
        },
        "pain": {
            "value": 1,
            "outcome": "uncertain",
            "probability": 0.5,
            "probabilities": {"1": 0.5, "2": 0.25, "3": 0.25},
            "entropy": 1.5 * math.log(2) / math.log(3),
            "confidence": 0.0,
            "margin": 0.25,
            "expected": 1.75,
            "std_error": None,
            "agreement": 1.0,
            "reads": 1,
            "label_mass": None,
        },
        "refill": {
            "value": True,
            "outcome": "uncertain",
            "probability": 0.5,
            "probabilities": {"true": 0.5, "false": 0.5},
            "entropy": 1.0,
            "confidence": 0.0,
            "margin": 0.0,
            "std_error": None,
            "agreement": 1.0,
            "reads": 1,
            "label_mass": None,
        },
    },
    "policy": {"reads": 1, "rounds": 1, "stop_reason": "max_reads", "max_entropy": 1.0, "seeds": [42]},
}


def approximately(value: Any) -> Any:
    """The same, with numbers that may be off by a rounding."""
    if isinstance(value, dict):
        return {key: approximately(below) for key, below in value.items()}
    return pytest.approx(value, abs=1e-12) if isinstance(value, float) else value


async def test_golden_answer(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """The whole of it: every key of the contract and no other."""
    fake.logprobs = half_then_halves
    response = await client.post("/decide", json=GOLDEN_REQUEST)
    body = response.json()
    assert response.status_code == 200
    assert re.fullmatch("dec_[0-9a-f]{24}", body.pop("id"))
    timing = body.pop("timing")
    assert timing.keys() == {"total_ms", "queue_ms", "engine_ms"}
    assert all(milliseconds >= 0 for milliseconds in timing.values())
    request = fake.requests[-1]
    usage = {
        "input_tokens": len(request.prompt_token_ids),
        "cached_tokens": 0,
        "canvas_tokens": len(request.branches[0].canvas_token_ids),
        "engine_steps": 1,
    }
    expected = {**GOLDEN, "usage": usage, "fingerprint": fingerprint(await fake.start())}
    assert body == approximately(expected)


async def test_a_decision_satisfies_its_rubric(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """Rubrics of every kind and size, states of every shape."""
    for number, body in enumerate(REQUESTS):
        with subtests.test(str(number)):
            response = await client.post("/decide", json=body)
            assert response.status_code == 200
            answered = response.json()
            jsonschema.validate(answered["decision"], body["rubric"])
            for answer in answered["answers"].values():
                assert math.fsum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-9)
                assert answer["probability"] == max(answer["probabilities"].values())


async def test_the_same_request_twice(client: httpx.AsyncClient) -> None:
    """R17: all but id and timing is the same, without a seed and with one; another seed reads other noise."""

    async def answered(**policy: Any) -> dict[str, Any]:
        body: dict[str, Any] = (await ask(client, policy=policy)).json()
        return {key: value for key, value in body.items() if key not in ("id", "timing")}

    first = await answered()
    assert await answered() == first
    assert await answered(seed=first["policy"]["seeds"][0]) == first
    assert (await answered(seed=1))["answers"] != first["answers"]


async def test_one_more_than_max_inflight(client: httpx.AsyncClient, fake: FakeEngine, settings: Settings) -> None:
    """R1, R3: 429 at once with `Retry-After`, and nothing was asked of the engine; probes and scrapers are served."""
    fake.gate.clear()
    before = len(fake.requests)
    admitted = [asyncio.create_task(ask(client, policy={"seed": n})) for n in range(settings.max_inflight)]
    await until(lambda: len(fake.requests) == before + settings.max_inflight)
    refused = await ask(client)
    assert problem_of(refused) == (429, "overloaded")
    low, high = RETRY_AFTER_SECONDS
    assert low <= int(refused.headers["retry-after"]) <= high
    assert len(fake.requests) == before + settings.max_inflight
    assert await phase_of(client) == "ready"
    assert f"decide_inflight {settings.max_inflight}.0" in (await client.get("/metrics")).text
    fake.gate.set()
    assert [response.status_code for response in await asyncio.gather(*admitted)] == [200] * settings.max_inflight
    assert (await ask(client)).status_code == 200


async def test_a_deadline(client: httpx.AsyncClient, fake: FakeEngine, settings: Settings) -> None:
    """R6: 504 in the time the caller gave, the read aborted, every permit free again."""
    fake.gate.clear()
    for _ in range(2 * settings.max_inflight):
        assert problem_of(await ask(client, policy={"deadline_ms": 5})) == (504, "deadline_exceeded")
    assert list(fake.aborted) == [request.request_id for request in fake.requests][1:]
    fake.gate.set()
    assert (await ask(client)).status_code == 200


async def test_before_ready(app: FastAPI, fake: FakeEngine) -> None:
    """R12: 503 `starting` with `Retry-After`, whatever is sent, exactly as long as `/health` is 503."""
    fake.gate.clear()
    async with serving(app) as client:
        await until(lambda: bool(fake.requests))
        for response in (await ask(client), await client.post("/decide", content=b"not even JSON")):
            assert problem_of(response) == (503, "starting")
            assert "retry-after" in response.headers
            assert await phase_of(client) == "starting"
        assert len(fake.requests) == 1
        fake.gate.set()
        await until_phase(client, "ready")
        assert (await ask(client)).status_code == 200


async def test_logprobs_that_are_no_numbers(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """R18: 500 `internal`, and the next request is served."""
    script = fake.logprobs
    for bad in (math.nan, math.inf, -math.inf):
        fake.logprobs = lambda *_, bad=bad: (bad, 0.0)
        assert problem_of(await ask(client)) == (500, "internal")
    fake.logprobs = script
    assert (await ask(client)).status_code == 200


async def test_a_read_that_fails(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """R15: that request gets 500, the replica stays healthy."""
    fake.read_error = ReadFailed(CANARY)
    response = await ask(client)
    assert problem_of(response) == (500, "internal")
    assert CANARY not in response.text
    assert await phase_of(client) == "ready"


async def test_a_dead_engine(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """R13: 503 `engine_dead` with `Retry-After` for those under way and those that come, and `/health` agrees."""
    fake.gate.clear()
    before = len(fake.requests)
    under_way = [asyncio.create_task(ask(client, policy={"seed": n})) for n in range(3)]
    await until(lambda: len(fake.requests) == before + 3)
    fake.read_error = EngineDied(CANARY)
    fake.gate.set()
    for response in (*await asyncio.gather(*under_way), await ask(client)):
        assert problem_of(response) == (503, "engine_dead")
        assert "retry-after" in response.headers
        assert CANARY not in response.text
    assert await phase_of(client) == "failed"


async def test_a_bug(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever nobody thought of is a 500 of the same form, and quotes nothing."""

    def fail(*_: object) -> None:
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr("app.routers.decide.parse_decide_request", fail)
    response = await ask(client)
    assert problem_of(response) == (500, "internal")
    assert CANARY not in response.text


async def test_a_prompt_that_is_too_long(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """422 with the token counts, before the engine is asked: the rubric's fault if no state would fit beside it."""
    before = len(fake.requests)
    for changed, pointer in (({"state": "word " * 5000}, "/state"), ({"instructions": "word " * 5000}, "/rubric")):
        response = await ask(client, **changed)
        assert problem_of(response) == (422, "prompt_too_long")
        (problem,) = response.json()["errors"]
        assert problem["pointer"] == pointer
        assert re.search(r"need \d+ tokens, 4096 are served", problem["message"])
    assert len(fake.requests) == before


BAD_RUBRICS: dict[str, Any] = {
    "text": CANARY,
    "list": [CANARY],
    "type": {"type": CANARY, "properties": CANARY, "required": CANARY, "additionalProperties": CANARY},
    "required": rubric(a=REFILL) | {"required": [CANARY]},
    "keyword": rubric(a={**REFILL, "pattern": CANARY, "$ref": CANARY, "not": {"const": CANARY}}),
    "question": rubric(a=CANARY, b=[CANARY], c={"type": CANARY}),
    "title": rubric(a={**REFILL, "title": [CANARY], "description": {"a": CANARY}}),
    "enum": rubric(a={"enum": [CANARY, CANARY]}, b={"enum": [[CANARY], CANARY]}, c={"enum": CANARY}),
    "option": rubric(a={"oneOf": [CANARY, {"const": [CANARY]}, {"const": 1, "title": [CANARY], "$ref": CANARY}]}),
    "option type": rubric(a={"enum": [CANARY, 1], "type": [CANARY]}, b={"enum": [CANARY, "b"], "type": "integer"}),
    "bound": rubric(a={**PAIN, "minimum": CANARY, "maximum": [CANARY]}),
    "long": rubric(a={**MOOD, "title": CANARY * 1000}, b={"enum": [CANARY * 1000, 1]}),
}
BAD_BODIES: dict[str, bytes] = {
    **{f"rubric: {name}": json.dumps(request_body(rubric=bad)).encode() for name, bad in BAD_RUBRICS.items()},
    "no JSON": CANARY.encode(),
    "half of JSON": f'{{"state": "{CANARY}'.encode(),
    "NaN": f'{{"state": "{CANARY}", "rubric": NaN}}'.encode(),
    "a key twice": f'{{"state": "{CANARY}", "state": "{CANARY}"}}'.encode(),
    "a text": f'"{CANARY}"'.encode(),
    "surrogate": f'["{CANARY}\\ud800"]'.encode(),
    "depth": f'["{CANARY}",'.encode() + b"[" * 100,
    "size": b'"' + CANARY.encode() * 10_000 + b'"',
    "types": json.dumps({"state": 1, "rubric": CANARY, "instructions": [CANARY], "policy": CANARY}).encode(),
    "policy": json.dumps(
        request_body(policy=dict.fromkeys(("seed", "layout", "order", "max_reads", "entropy_threshold"), CANARY))
    ).encode(),
    "unknown fields": json.dumps(request_body(more=CANARY, policy={"more": CANARY})).encode(),
}


async def test_a_refusal_never_echoes_input(client: httpx.AsyncClient, subtests: pytest.Subtests) -> None:
    """P1: a value stands in no part of an answer, whatever was wrong with it."""
    headers = {"content-type": "application/json", "x-request-id": CANARY, "user-agent": CANARY}
    for name, body in BAD_BODIES.items():
        with subtests.test(name):
            response = await client.post(f"/decide?{CANARY}", content=body, headers=headers)
            assert 400 <= response.status_code < 500
            assert response.json()["errors"]
            assert CANARY not in response.text + str(response.headers)
