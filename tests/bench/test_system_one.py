"""System One beside vLLM's own: what is asked, and how rows are made of it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.settings import Settings
from app.system_one_wire import parse_system_one_request
from bench.engines import EngineOptions
from bench.own_service import settings_of
from bench.system_one import COUNTS, HEADER, make_arms, question, system_one_rows


async def test_rows(client: httpx.AsyncClient) -> None:
    """One per arm, with ratios to the first; the service stands in for vLLM too, for it takes the same requests."""
    rows = await system_one_rows(make_arms(client, client, 0), count=4, clients=2, turns=3)
    assert [row[:3] for row in rows] == [(4, 2, name) for name in ("vLLM", "isolated", "joint", "vLLM again")]
    assert all(len(row) == len(HEADER) for row in rows)
    assert rows[0][5:] == ("", "")
    assert all("[" in str(cell) for row in rows[1:] for cell in row[5:])


async def test_a_service_that_leaves_a_question_out() -> None:
    """Is no measurement."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"answers": {}}))
    async with httpx.AsyncClient(base_url="http://there", transport=transport) as short:
        with pytest.raises(AssertionError, match="not answered"):
            await system_one_rows(make_arms(short, short, 0), count=1, clients=1, turns=1)


def test_no_service_is_asked_about_a_state_twice() -> None:
    """Else its prefix cache would be measured."""
    nobody = httpx.AsyncClient(base_url="http://there")
    asked: list[tuple[str, str]] = []
    for run, count in enumerate(COUNTS):
        for arm in make_arms(nobody, nobody, run):
            service = "vLLM" if arm.layout is None else arm.layout
            asked += [(service, arm.body(count, number)["state"]) for number in range(3)]
    assert len(set(asked)) == len(asked)


def test_questions_are_understood() -> None:
    """Every type of them."""
    body: dict[str, Any] = {"model": "jev-latest", "state": "a", "questions": {f"q{n}": question(n) for n in range(16)}}
    assert len(parse_system_one_request(body, "onestep-demo").questions) == 16


def test_both_services_have_the_same_sizes() -> None:
    """What a bench's options say, as our service's variables."""
    options = EngineOptions(model="", dtype="float32")
    assert Settings.from_env(settings_of(options)) == options.settings()
