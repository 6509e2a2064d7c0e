"""POST /v1/decisions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import httpx
import pytest

from app.access import ApiKey
from app.main import create_app
from app.settings import Settings
from engine.fake import FakeEngine
from engine.protocol import EngineDied
from tests.app.canary import CANARY
from tests.app.conftest import Decode
from tests.app.routers.test_system_one import EXTENSIONS, halves
from tests.app.service import one_too_many, serving, until_phase

PATH = "/v1/decisions"
PREDICATE = {"type": "predicate", "name": "refill", "instructions": "The member wants a refill."}
CHOICE = {
    "type": "choice",
    "name": "team",
    "instructions": "Which team?",
    "choices": [{"value": "billing", "description": "invoices"}, {"value": True}, {"value": "true"}],
}
SCORE = {
    "type": "score",
    "instructions": [{"type": "input_text", "text": "How urgent?"}, {"type": "input_json", "data": {"scale": 2}}],
    "levels": [{"label": "low", "description": "can wait"}, {"label": "high"}],
}


def body(**changed: Any) -> dict[str, Any]:
    """A good request with these fields over it."""
    return {"model": "gpt-6-luna", "input": "Hello.", "questions": [PREDICATE], **changed}


async def ask(client: httpx.AsyncClient, **changed: Any) -> httpx.Response:
    """POST it."""
    return await client.post(PATH, json=body(**changed))


async def test_golden_answer(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """The whole of it: the protocol's fields, ours with `x_`, and no other; answers in the order of the questions."""
    fake.logprobs = halves
    response = await ask(client, questions=[SCORE, CHOICE, PREDICATE], x_policy={"seed": 42})
    found = response.json()
    assert list(found)[:3] == ["model", "answers", "usage"]
    assert all(answer.keys() >= EXTENSIONS for answer in found["answers"])
    plain = [{key: value for key, value in answer.items() if key not in EXTENSIONS} for answer in found["answers"]]
    half, quarter = pytest.approx(0.5), pytest.approx(0.25)
    assert plain == [
        {
            "type": "score",
            "name": None,
            "score": half,
            "probabilities": [
                {"value": 0, "label": "low", "probability": half},
                {"value": 1, "label": "high", "probability": half},
            ],
            "confidence": pytest.approx(0),
        },
        {
            "type": "choice",
            "name": "team",
            "choice": "billing",
            "probabilities": [
                {"value": "billing", "probability": half},
                {"value": True, "probability": quarter},
                {"value": "true", "probability": quarter},
            ],
            "confidence": pytest.approx((0.5 - 1 / 3) / (1 - 1 / 3)),
        },
        {"type": "predicate", "name": "refill", "probability": half, "x_confidence": pytest.approx(0)},
    ]
    request = fake.requests[-1]
    tokens = len(request.prompt_token_ids) + sum(len(branch.suffix_token_ids) for branch in request.branches)
    canvas = sum(len(branch.canvas_token_ids) for branch in request.branches)
    assert found["model"] == "onestep-demo"
    assert found["usage"] == {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": canvas,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + canvas,
    }
    assert found["x_policy"]["seeds"] == [42]
    assert found["x_usage"]["engine_steps"] == 1


async def test_a_boolean_is_not_its_text(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """Whichever is the likeliest, its value is of the type that was sent."""
    for likeliest, value in enumerate(["billing", True, "true"]):
        # The engine is asked for labels in the order of the options.
        fake.logprobs = lambda _r, _b, slot, best=likeliest: tuple(  # type: ignore[misc]
            math.log(0.8 if i == best else 0.1) for i in range(len(slot.label_token_ids))
        )
        (answer,) = (await ask(client, questions=[CHOICE])).json()["answers"]
        assert answer["choice"] == value
        assert type(answer["choice"]) is type(value)


async def test_what_the_model_is_shown(client: httpx.AsyncClient, fake: FakeEngine, decode: Decode) -> None:
    """No names; parts of text as text and of JSON as JSON."""
    questions = [{**PREDICATE, "name": CANARY}, CHOICE, SCORE]
    await ask(client, questions=questions, safety_identifier=CANARY, prompt_cache_key=CANARY)
    request = fake.requests[-1]
    suffixes = [decode(branch.suffix_token_ids) for branch in request.branches]
    lines = [
        ["1. The member wants a refill", "- A = yes", "- B = no"],
        ["1. Which team?", "- A = billing: invoices", "- B = yes", "- C = true"],
        ['1. How urgent? {"scale": 2}', "- A = 0: low: can wait", "- B = 1: high"],
    ]
    for suffix, expected in zip(suffixes, lines, strict=True):
        assert "\n".join(expected) in suffix
    assert CANARY not in decode(request.prompt_token_ids) + "".join(suffixes)


MESSAGES: list[Any] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "type": "message", "content": [{"type": "input_text", "text": "I need"}]},
    {"role": "user", "content": [{"type": "input_text", "text": "more"}, {"type": "input_json", "data": [{"n": 2}]}]},
    {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"id": 3}'},
    {"type": "function_call_output", "call_id": "c1", "output": "found"},
    {"type": "custom_tool_call", "call_id": "c2", "name": "note", "input": "call back"},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "noted"}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}, {"type": "refusal", "refusal": "No."}]},
]
SHOWN = (
    "system: Be brief.\n"
    "user: I need\n"
    'user: more\n  [{"n": 2}]\n'
    'tool call: find {"id": 3}\n'
    "tool: found\n"
    "tool call: note call back\n"
    "tool: noted\n"
    "assistant: Done.\n  No."
)


async def test_input_of_messages(client: httpx.AsyncClient, fake: FakeEngine, decode: Decode) -> None:
    """Who said it, and what; tool calls and what came of them too."""
    assert (await ask(client, input=MESSAGES)).status_code == 200
    assert SHOWN in decode(fake.requests[-1].prompt_token_ids)


async def test_another_layout(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """Questions are read apart unless the request says otherwise."""
    for policy, branches in (({}, 3), ({"layout": "joint"}, 1)):
        await ask(client, questions=[PREDICATE, CHOICE, SCORE], x_policy=policy)
        assert len(fake.requests[-1].branches) == branches


@pytest.mark.parametrize("model", ["gpt-6-luna", "onestep-demo"])
async def test_models_that_are_taken(client: httpx.AsyncClient, model: str) -> None:
    """OpenAI's, and ours: the answer says which it is."""
    response = await ask(client, model=model)
    assert (response.status_code, response.json()["model"]) == (200, "onestep-demo")


def wrong(param: str | None, code: str, **changed: Any) -> Any:
    """A request that is wrong at one place."""
    return pytest.param(changed, param, code, id=f"{param}-{code}"[:60])


def asking(question: Any) -> dict[str, Any]:
    """One question, as the field of a request."""
    return {"questions": [question]}


IMAGE = {"type": "input_image", "image_url": CANARY}


@pytest.mark.parametrize(
    ("changed", "param", "code"),
    [
        wrong("model", "schema_rejected", model=5),
        wrong("input", "schema_rejected", input=None),
        wrong("input", "schema_rejected", input=[]),
        wrong("input[0]", "schema_rejected", input=[CANARY]),
        wrong("input[0]", "schema_rejected", input=[{"role": CANARY, "content": CANARY}]),
        wrong("input[0]", "schema_rejected", input=[{"type": [CANARY], "role": "user", "content": CANARY}]),
        wrong("input[0].content", "schema_rejected", input=[{"role": "user", "content": {}}]),
        wrong("input[0].content[0]", "schema_rejected", input=[{"role": "user", "content": [{"type": CANARY}]}]),
        wrong("input[0].content[0]", "schema_rejected", input=[{"role": "user", "content": [CANARY]}]),
        wrong(
            "input[0].content[0].text", "schema_rejected", input=[{"role": "user", "content": [{"type": "input_text"}]}]
        ),
        wrong("input[0].content[0]", "not_offered", input=[{"role": "user", "content": [IMAGE]}]),
        wrong("input[0].arguments", "schema_rejected", input=[{"type": "function_call", "name": CANARY}]),
        wrong("questions", "schema_rejected", questions=[]),
        wrong("questions", "schema_rejected", questions={"q": PREDICATE}),
        wrong("questions", "rubric_rejected", questions=[PREDICATE] * 65),
        wrong("questions", "schema_rejected", questions=[CANARY] * 1000),
        wrong("questions[0]", "schema_rejected", **asking({"type": CANARY})),
        wrong("questions[0].instructions", "schema_rejected", **asking({"type": "predicate"})),
        wrong("questions[0].instructions", "schema_rejected", **asking({**PREDICATE, "instructions": None})),
        wrong("questions[0].instructions[0]", "not_offered", **asking({**PREDICATE, "instructions": [IMAGE]})),
        wrong("questions[0].instructions", "rubric_rejected", **asking({**PREDICATE, "instructions": "x" * 5000})),
        wrong("questions[0].name", "schema_rejected", **asking({**PREDICATE, "name": 5})),
        wrong("questions[0].choices", "schema_rejected", **asking({**CHOICE, "choices": [{"value": CANARY}]})),
        wrong(
            "questions[0].choices",
            "schema_rejected",
            **asking({**CHOICE, "choices": [{"value": f"{CANARY}{n}"} for n in range(256)]}),
        ),
        wrong("questions[0].choices[0].value", "schema_rejected", **asking({**CHOICE, "choices": [{}, {}]})),
        wrong("questions[0]", "rubric_rejected", **asking({**CHOICE, "choices": [{"value": CANARY}] * 2})),
        wrong("questions[0].levels", "schema_rejected", **asking({**SCORE, "levels": [{"label": CANARY}] * 11})),
        wrong("questions[0].levels[0].label", "schema_rejected", **asking({**SCORE, "levels": [{"label": 1}] * 2})),
        wrong(
            "questions[0].levels[1]",
            "rubric_rejected",
            **asking({**SCORE, "levels": [{"label": "a"}, {"label": CANARY * 500}]}),
        ),
        wrong("temperature", "schema_rejected", temperature=CANARY),
        wrong("safety_identifier", "schema_rejected", safety_identifier=CANARY * 20),
        wrong("x_policy.max_reads", "schema_rejected", x_policy={"max_reads": 2}),
        wrong(None, "context_length_exceeded", input="word " * 5000),
    ],
)
async def test_what_is_not_valid(
    client: httpx.AsyncClient, changed: dict[str, Any], param: str | None, code: str
) -> None:
    """400, P1: at its place in the caller's own body, without what stands there."""
    response = await ask(client, **changed)
    error = response.json()["error"]
    assert (response.status_code, response.json().keys()) == (400, {"error"})
    assert (error["type"], error["code"]) == ("invalid_request_error", code)
    if param is not None:
        assert error["param"] == param
    assert CANARY not in response.text


async def test_a_model_that_is_not_here(client: httpx.AsyncClient) -> None:
    """404, as OpenAI has it."""
    refused = await ask(client, model=CANARY)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (404, "model_not_found", "model")
    assert CANARY not in refused.text


async def test_full(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """429, R1: and when to come back."""
    refused = await one_too_many(fake, lambda: ask(client), admitted=4)
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(refused.headers["retry-after"]) >= 1


async def test_failures(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """504, 500, 503: of a type that is not the caller's fault."""
    fake.gate.clear()
    late = await ask(client, x_policy={"deadline_ms": 1})
    fake.gate.set()
    fake.logprobs = lambda *_: (float("nan"), 0.0)
    broken = await ask(client)
    fake.read_error = EngineDied("gone")
    dead = await ask(client)
    assert [response.status_code for response in (late, broken, dead)] == [504, 500, 503]
    assert {response.json()["error"]["type"] for response in (late, broken, dead)} == {"server_error"}


async def test_keys(settings: Settings, fake: FakeEngine) -> None:
    """S1: without one, and with another's."""
    key = "k" * 32
    keyed = replace(settings, api_keys=(ApiKey.parse(f"clinic:{key}"),))
    async with serving(create_app(keyed, lambda _: fake)) as client:
        await until_phase(client, "ready")
        for headers in ({}, {"authorization": f"Bearer {CANARY}{key}"}):
            refused = await client.post(PATH, json=body(), headers=headers)
            assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
            assert CANARY not in refused.text
        answer = await client.post(PATH, json=body(), headers={"authorization": f"Bearer {key}"})
        assert answer.status_code == 200
        assert fake.requests[-1].cache_salt
