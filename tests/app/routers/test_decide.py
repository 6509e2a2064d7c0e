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

from app.canvas.plan import Layout, Order
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
            "order_disagreement": None,
            "label_mass": None,
            "temperature": 1.0,
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
            "order_disagreement": None,
            "label_mass": None,
            "temperature": 1.0,
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
            "order_disagreement": None,
            "label_mass": None,
            "temperature": 1.0,
        },
    },
    "policy": {
        "reads": 1,
        "rounds": 1,
        "stop_reason": "max_reads",
        "entropy_threshold": 0.9,
        "max_reads": 1,
        "max_entropy": 1.0,
        "seeds": [42],
    },
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
    expected = {**GOLDEN, "usage": usage, "fingerprint": fingerprint(await fake.start(), {})}
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


SYMPTOMS = {"title": "Symptoms", "type": "array", "items": {"enum": ["pain", 2, None]}, "minItems": 1}
SHARE = {"title": "Is it urgent?", "type": "number", "minimum": 0, "maximum": 1}
# Questions of every kind, nested, constant, conditional.
EVERYTHING: dict[str, Any] = {
    **rubric(
        topic=TOPIC,
        contact={"type": "object", "properties": {"symptoms": SYMPTOMS, "by/mail": REFILL}, "required": ["symptoms"]},
        share=SHARE,
        version={"const": 3},
        visit={"title": "Visit", "anyOf": [{"type": "object", "properties": {"mood": MOOD}}, {"type": "null"}]},
        refill=REFILL,
    ),
    "required": ["topic", "contact", "share", "version", "visit", "refill"],
    "unevaluatedProperties": False,
    "if": {"properties": {"refill": {"const": True}}},
    "then": {"properties": {"pain": PAIN}, "required": ["pain"]},
}
IDS = ["topic", "contact/symptoms", "contact/by~1mail", "share", "visit", "visit/mood", "refill", "pain"]
WAYS = [(layout, order) for layout in Layout for order in Order]


@pytest.mark.parametrize(("layout", "order"), WAYS)
async def test_layouts_and_orders(
    client: httpx.AsyncClient, fake: FakeEngine, layout: Layout, order: Order, subtests: pytest.Subtests
) -> None:
    """Any question in any of them: in one engine request and step, the decision an instance of the rubric."""
    for seed in range(8):
        with subtests.test(str(seed)):
            policy = {"layout": layout.value, "order": order.value, "seed": seed}
            before = len(fake.requests)
            response = await ask(client, rubric=EVERYTHING, policy=policy)
            assert response.status_code == 200
            body = response.json()
            jsonschema.validate(body["decision"], EVERYTHING)
            (request,) = list(fake.requests)[before:]
            assert list(body["answers"]) == IDS
            assert len(request.branches) == (1 if layout is Layout.JOINT else len(IDS))
            assert body["policy"]["seeds"] == [seed]
            assert (body["policy"]["reads"], body["usage"]["engine_steps"]) == (1, 1)
            suffix_tokens = sum(len(branch.suffix_token_ids) for branch in request.branches)
            assert (suffix_tokens > 0) is (layout is Layout.ISOLATED)
            assert body["usage"]["input_tokens"] == len(request.prompt_token_ids) + suffix_tokens
            assert body["usage"]["canvas_tokens"] == sum(len(branch.canvas_token_ids) for branch in request.branches)


def sure_of(*labels: int) -> Any:
    """A script: the label at that place of each slot, in order, but for the last slots, which are undecided."""

    def told(request: ReadRequest, branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        slots = [(one.canvas_token_ids, own.position) for one in request.branches for own in one.canvas_slots]
        number = slots.index((branch.canvas_token_ids, slot.position))
        wanted = labels[number] if number < len(labels) else -1
        return tuple(-0.001 if wanted in (i, -1) else -8.0 for i in range(len(slot.label_token_ids)))

    return told


YES, NO = 0, 1


async def test_skipped_answers(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """What is asked under a condition that does not hold, or of an object that is not there: read, and no answer.

    It has no value, the decision does not hold it, and its doubt is not the decision's.
    """
    fake.logprobs = sure_of(1, YES, NO, YES, NO, YES, NO, 2, NO)
    refused = (await ask(client, rubric=EVERYTHING)).json()
    assert refused["decision"] == {
        "topic": "symptoms",
        "contact": {"symptoms": ["pain", None], "by/mail": False},
        "share": pytest.approx(1, abs=1e-3),
        "version": 3,
        "visit": None,
        "refill": False,
    }
    outcomes = {id_: answer["outcome"] for id_, answer in refused["answers"].items()}
    assert outcomes == {**dict.fromkeys(IDS, "decided"), "visit/mood": "skipped", "pain": "skipped"}
    assert (refused["answers"]["pain"]["value"], refused["answers"]["visit/mood"]["value"]) == (None, None)
    assert refused["answers"]["pain"]["entropy"] == 1.0
    assert refused["answers"]["pain"]["probabilities"] == pytest.approx(dict.fromkeys("01234", 0.2))
    assert refused["answers"]["pain"]["expected"] == pytest.approx(2.0)
    assert (refused["outcome"], refused["policy"]["stop_reason"]) == ("decided", "entropy")
    assert refused["policy"]["max_entropy"] < 0.01


async def test_conditional_answers(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """The same questions where the conditions hold: now the doubt counts."""
    fake.logprobs = sure_of(1, YES, NO, YES, NO, NO, YES, 2, YES)
    made = (await ask(client, rubric=EVERYTHING)).json()
    assert made["decision"] == {
        "topic": "symptoms",
        "contact": {"symptoms": ["pain", None], "by/mail": False},
        "share": pytest.approx(0, abs=1e-3),
        "version": 3,
        "visit": {"mood": None},
        "refill": True,
        "pain": 0,
    }
    outcomes = {id_: answer["outcome"] for id_, answer in made["answers"].items()}
    assert outcomes == {**dict.fromkeys(IDS, "decided"), "pain": "uncertain"}
    assert (made["outcome"], made["policy"]["stop_reason"], made["policy"]["max_entropy"]) == (
        "uncertain",
        "max_reads",
        1.0,
    )


def yes_with(*shares: float) -> Any:
    """A script: the probability of the first of two labels at each slot of a canvas, in order."""

    def told(_request: ReadRequest, branch: Branch, slot: CanvasSlot) -> tuple[float, ...]:
        yes = shares[branch.canvas_slots.index(slot)]
        return math.log(yes), math.log(1 - yes)

    return told


async def test_an_answer_that_is_a_list(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """Each option's probability to be in it, whatever they sum to; as sure as the least sure of them."""
    fake.logprobs = yes_with(0.9, 0.2, 0.6)
    made = (await ask(client, rubric=rubric(symptoms=SYMPTOMS))).json()
    assert made["decision"] == {"symptoms": ["pain", None]}
    answer = made["answers"]["symptoms"]
    assert answer == approximately(
        {
            "value": ["pain", None],
            "outcome": "uncertain",
            "probability": 0.6,
            "probabilities": {"pain": 0.9, "2": 0.2, "null": 0.6},
            "entropy": -(0.6 * math.log2(0.6) + 0.4 * math.log2(0.4)),
            "confidence": 0.2,
            "margin": 0.2,
            "std_error": None,
            "agreement": 1.0,
            "reads": 1,
            "order_disagreement": None,
            "label_mass": None,
            "temperature": 1.0,
        }
    )


async def test_bounds_of_a_list(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """The decision holds as many as the rubric admits: the likeliest, if need be of those that are not likely."""
    for shares, bounds, value in (
        ((0.4, 0.2, 0.3), {"minItems": 2}, ["pain", None]),
        ((0.7, 0.8, 0.9), {"maxItems": 1}, [None]),
        ((0.7, 0.8, 0.9), {"minItems": 0, "maxItems": 0}, []),
        ((0.1, 0.2, 0.3), {"minItems": 0}, []),
    ):
        fake.logprobs = yes_with(*shares)
        made = (await ask(client, rubric=rubric(symptoms={**SYMPTOMS, **bounds}))).json()
        assert made["decision"] == {"symptoms": value}
        assert made["answers"]["symptoms"]["probabilities"] == approximately(
            dict(zip(("pain", "2", "null"), shares, strict=True))
        )


@pytest.mark.parametrize("share", [0.03, 0.5, 0.97])
async def test_an_answer_that_is_a_probability(client: httpx.AsyncClient, fake: FakeEngine, share: float) -> None:
    """The decision holds that of yes, however likely no is."""
    fake.logprobs = yes_with(share)
    made = (await ask(client, rubric=rubric(share=SHARE))).json()
    answer = made["answers"]["share"]
    assert made["decision"]["share"] == answer["value"] == pytest.approx(share)
    assert answer["probabilities"] == approximately({"true": share, "false": 1 - share})
    assert answer["probability"] == pytest.approx(max(share, 1 - share))
    assert answer["outcome"] == ("uncertain" if share == 0.5 else "decided")


async def answers_of(client: httpx.AsyncClient, asked: dict[str, Any], **policy: Any) -> dict[str, Any]:
    """The answers to these questions, without a seed."""
    response = await ask(client, rubric=asked, policy=policy)
    assert response.status_code == 200
    answers: dict[str, Any] = response.json()["answers"]
    return answers


async def test_isolated_answers_do_not_move_each_other(client: httpx.AsyncClient) -> None:
    """Questions added, removed, renamed or in another order: each is answered as it is alone. Not so in one canvas."""
    asked = {"topic": TOPIC, "symptoms": SYMPTOMS, "pain": PAIN, "refill": REFILL}
    for order in Order:
        policy = {"layout": "isolated", "order": order.value}
        together = await answers_of(client, rubric(**asked), **policy)
        backwards = await answers_of(client, rubric(**dict(reversed(asked.items()))), **policy)
        for name, question in asked.items():
            (alone,) = (await answers_of(client, rubric(**{f"{name} again": question}), **policy)).values()
            assert together[name] == alone == backwards[name]
    joint = await answers_of(client, rubric(**asked))
    assert joint["pain"] != (await answers_of(client, rubric(pain=PAIN)))["pain"]


@pytest.mark.parametrize("layout", Layout)
async def test_names_move_no_answer(client: httpx.AsyncClient, layout: Layout) -> None:
    """Nor does the order in which a schema's keywords come."""
    before = await answers_of(client, rubric(topic=TOPIC, pain=PAIN), layout=layout.value)
    renamed = rubric(**{"/": dict(reversed(TOPIC.items())), "say A": dict(reversed(PAIN.items()))})
    after = await answers_of(client, dict(reversed(renamed.items())), layout=layout.value)
    assert list(before) == ["topic", "pain"]
    assert list(after) == ["~1", "say A"]
    assert list(after.values()) == list(before.values())


async def test_more_questions_than_a_canvas_holds(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """S11: 64 are answered, in one request and one step; 65 are refused, and the engine is not asked."""
    response = await ask(client, rubric=rubric(**{f"q{n}": REFILL for n in range(64)}))
    assert response.status_code == 200
    assert len(response.json()["decision"]) == 64
    request = fake.requests[-1]
    assert sum(len(branch.canvas_slots) for branch in request.branches) == 64
    assert len(request.branches) > 1
    refused = await ask(client, rubric=rubric(**{f"q{n}": REFILL for n in range(65)}))
    assert problem_of(refused) == (422, "rubric_rejected")
    assert fake.requests[-1] is request


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


async def test_two_requests_of_one_id(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """S5: at the same time, with the same header: both are answered, and the engine knows them apart."""
    fake.gate.clear()
    before = len(fake.requests)
    headers = {"x-request-id": CANARY}
    asked = [
        asyncio.create_task(client.post("/decide", json=request_body(policy={"seed": n}), headers=headers))
        for n in range(2)
    ]
    await until(lambda: len(fake.requests) == before + 2)
    fake.gate.set()
    answers = await asyncio.gather(*asked)
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len({answer.headers["x-request-id"] for answer in answers} | {CANARY}) == 3
    ids = {request.request_id for request in list(fake.requests)[before:]}
    assert len(ids) == 2
    assert not any(CANARY in name for name in ids)


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
        assert re.search(r"need at least \d+ tokens, 4096 are served", problem["message"])
    assert len(fake.requests) == before


BAD_RUBRICS: dict[str, Any] = {
    "text": CANARY,
    "array": [CANARY],
    "type": {"type": CANARY, "properties": CANARY, "required": CANARY, "additionalProperties": CANARY},
    "required": rubric(a=REFILL) | {"required": [CANARY]},
    "keyword": rubric(a={**REFILL, "pattern": CANARY, "$ref": CANARY, "not": {"const": CANARY}}),
    "question": rubric(a=CANARY, b=[CANARY], c={"type": CANARY}),
    "title": rubric(a={**REFILL, "title": [CANARY], "description": {"a": CANARY}}),
    "enum": rubric(a={"enum": [CANARY, CANARY]}, b={"enum": [[CANARY], CANARY]}, c={"enum": CANARY}),
    "option": rubric(a={"oneOf": [CANARY, {"const": [CANARY]}, {"const": 1, "title": [CANARY], "$ref": CANARY}]}),
    "option type": rubric(a={"enum": [CANARY, 1], "type": [CANARY]}, b={"enum": [CANARY, "b"], "type": "integer"}),
    "bound": rubric(a={**PAIN, "minimum": CANARY, "maximum": [CANARY]}),
    "reference": rubric(a={"$ref": f"#/$defs/{CANARY}"}, b={"$ref": CANARY}) | {"$defs": CANARY},
    "list": rubric(
        a={"type": "array", "items": CANARY}, b={"type": "array", "items": {"enum": [CANARY]}, "minItems": 2}
    ),
    "condition": rubric(a=REFILL) | {"if": {"properties": {"a": {"pattern": CANARY}}}, "then": CANARY},
    "dependence": rubric(a=REFILL) | {"dependentRequired": {"a": [CANARY]}, "dependentSchemas": {"a": CANARY}},
    "examples": rubric(a={"type": "string", "examples": [CANARY], "default": CANARY, "title": CANARY}),
    "described": rubric(a={**REFILL, "x-option-descriptions": {CANARY: CANARY}}),
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
