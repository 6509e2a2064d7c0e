"""POST /rubrics/check."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from app.canvas.plan import Planner
from engine.fake import FakeEngine
from tests.app.canary import CANARY
from tests.app.service import phase_of, request_body, until
from tests.cases import REFILL, TOPIC, rubric

ASKED = rubric(topic=TOPIC, refill=REFILL)


async def check(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    """What comes of a check."""
    response = await client.post("/rubrics/check", json=body)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_a_good_rubric(client: httpx.AsyncClient, planner: Planner) -> None:
    """Everything its author may want to see, whole."""
    found = await check(client, rubric=ASKED)
    before = planner.tokenizer.decode(planner.plan(ASKED).frame.before)
    assert found == {
        "is_accepted": True,
        "problems": [],
        "warnings": [],
        "questions": [
            {
                "id": "topic",
                "kind": "choice",
                "text": "Topic",
                "options": ["billing", "symptoms", "scheduling", "pharmacy"],
                "labels": [
                    {"option": "billing", "text": "billing", "label": "A"},
                    {"option": "symptoms", "text": "symptoms", "label": "B"},
                    {"option": "scheduling", "text": "scheduling", "label": "C"},
                    {"option": "pharmacy", "text": "pharmacy", "label": "D"},
                ],
                "lines": [1],
                "is_conditional": False,
            },
            {
                "id": "refill",
                "kind": "boolean",
                "text": "Does the member want a refill?",
                "options": ["true", "false"],
                "labels": [
                    {"option": "true", "text": "yes", "label": "E"},
                    {"option": "false", "text": "no", "label": "F"},
                ],
                "lines": [2],
                "is_conditional": False,
            },
        ],
        "prompt": {
            "before_state": before,
            "state": None,
            "after_state": "<turn|>\n<|turn>model\n<|channel>thought\n<channel|>",
            "tokens": found["prompt"]["tokens"],
            "state_tokens": None,
            "max_state_tokens": 4096 - found["prompt"]["tokens"] - 10,
        },
        "canvases": [
            {
                "questions": ["topic", "refill"],
                "suffix": "",
                "suffix_tokens": 0,
                "text": "1: ▢\n2: ▢\n<turn|><pad>",
                "width_tokens": 10,
                "reads": 1,
            }
        ],
    }
    assert "1. Topic\n- A = billing\n" in before


async def test_nothing_is_read(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """A check asks the engine nothing."""
    before = len(fake.requests)
    await check(client, rubric=ASKED, state="Hello.")
    assert len(fake.requests) == before


async def test_a_bad_rubric_is_an_answer(client: httpx.AsyncClient) -> None:
    """With the same problems as a decision would be refused with."""
    bad = rubric(topic={"type": "string"}, pain={"type": "integer"})
    found = await check(client, rubric=bad)
    refused = await client.post("/decide", json={"rubric": bad, "state": "Hello."})
    assert refused.status_code == 422
    assert found["problems"] == refused.json()["errors"]
    assert (found["is_accepted"], found["questions"], found["prompt"], found["canvases"]) == (False, [], None, [])


async def test_a_rubric_that_is_too_long_is_an_answer(client: httpx.AsyncClient) -> None:
    """No state would fit beside it."""
    found = await check(client, rubric=ASKED, instructions="word " * 5000)
    assert (found["is_accepted"], found["problems"][0]["code"]) == (False, "prompt_too_long")


async def test_a_state_is_counted(client: httpx.AsyncClient, planner: Planner) -> None:
    """In tokens, where it fits; where it does not that is the problem, and the rubric is shown all the same."""
    found = await check(client, rubric=ASKED, state=[{"role": "user", "content": "Hello there."}])
    assert found["prompt"]["state"] == "user: Hello there."
    assert found["prompt"]["state_tokens"] == len(planner.tokenizer.encode("user: Hello there."))
    too_long = await check(client, rubric=ASKED, state="word " * 5000)
    assert [problem["pointer"] for problem in too_long["problems"]] == ["/state"]
    assert (too_long["is_accepted"], len(too_long["questions"])) == (False, 2)
    assert too_long["prompt"]["state_tokens"] is None


async def test_layout_and_order_are_those_of_the_policy(client: httpx.AsyncClient) -> None:
    """As `/decide` would read it."""
    found = await check(client, rubric=ASKED, policy={"layout": "isolated", "order": "state_first"})
    assert [canvas["questions"] for canvas in found["canvases"]] == [["topic"], ["refill"]]
    assert all(canvas["suffix"].startswith("\n\n1. ") for canvas in found["canvases"])
    assert "Topic" not in found["prompt"]["before_state"]


async def test_warnings(client: httpx.AsyncClient) -> None:
    """What is allowed and probably not meant."""
    found = await check(client, rubric=rubric(refill={"type": "boolean"}))
    assert found["is_accepted"]
    assert [(one["pointer"], one["code"]) for one in found["warnings"]] == [("/rubric/properties/refill", "no_text")]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/rubric"),
        ({"rubric": ASKED, "rubrics": 1}, "/rubrics"),
        ({"rubric": ASKED, "policy": {"layout": "wide"}}, "/policy/layout"),
        ({"rubric": ASKED, "state": 7}, "/state"),
        ({"rubric": ASKED, "state": " "}, "/state"),
    ],
)
async def test_what_is_no_check_is_refused(client: httpx.AsyncClient, body: dict[str, Any], pointer: str) -> None:
    """As everywhere: a problem document that names the place and not the value."""
    response = await client.post("/rubrics/check", json=body)
    assert response.status_code == 422
    assert [problem["pointer"] for problem in response.json()["errors"]] == [pointer]


async def test_problems_name_no_value(client: httpx.AsyncClient) -> None:
    """S6: what is wrong is named by place and rule, here as well."""
    bad = rubric(topic={"enum": [CANARY, CANARY]}, pain={"type": CANARY, "title": CANARY})
    found = await check(client, rubric=bad, instructions=CANARY, state=CANARY)
    assert found["problems"]
    assert CANARY not in str(found)


async def test_a_check_needs_a_permit(client: httpx.AsyncClient, fake: FakeEngine) -> None:
    """It works for its answer, so it is counted among the requests served at once."""
    fake.gate.clear()
    before = len(fake.requests)
    admitted = [asyncio.create_task(client.post("/decide", json=request_body())) for _ in range(4)]
    await until(lambda: len(fake.requests) == before + 4)
    refused = await client.post("/rubrics/check", json={"rubric": ASKED})
    fake.gate.set()
    await asyncio.gather(*admitted)
    assert refused.status_code == 429
    assert await phase_of(client) == "ready"
