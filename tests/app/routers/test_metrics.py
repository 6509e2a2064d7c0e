"""GET /metrics."""

from __future__ import annotations

import httpx
from fastapi import FastAPI
from prometheus_client.parser import text_string_to_metric_families

from engine.fake import FakeEngine
from tests.app.canary import CANARY
from tests.app.service import request_body, serving


async def samples(client: httpx.AsyncClient) -> dict[str, float]:
    """Every sample on the page, by its name with labels."""
    page = (await client.get("/metrics")).text
    return {
        sample.name + str(sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


async def test_the_page(client: httpx.AsyncClient) -> None:
    """In the text format, for the scraper that asks for nothing special."""
    response = await client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    assert "decide_requests_total" in response.text


async def test_requests_are_counted_by_route_and_status(client: httpx.AsyncClient) -> None:
    """Good, refused and unknown ones."""
    await client.post("/decide", json=request_body())
    await client.post("/decide", json={})
    await client.get("/decide")
    await client.get(f"/{CANARY}")
    found = await samples(client)
    for route, status in (("/decide", "200"), ("/decide", "422"), ("/decide", "405"), ("unmatched", "404")):
        assert found[f"decide_requests_total[('route', '{route}'), ('status', '{status}')]"] == 1
    assert found["decide_rejected_total[('reason', 'schema_rejected')]"] == 1
    assert found["decide_reads_total[('path', 'fused')]"] == 1
    assert found["decide_inflight[]"] == 0


async def test_before_ready(app: FastAPI, fake: FakeEngine) -> None:
    """R3: the page is there from the first moment."""
    fake.start_seconds = 60.0
    async with serving(app) as client:
        assert (await client.get("/metrics")).status_code == 200


async def test_series_are_bounded(client: httpx.AsyncClient) -> None:
    """P4: requests of every kind, ever different: no new series after the first of each, no text of any in one."""

    async def ask(number: int) -> None:
        text = f"{CANARY}{number}"
        await client.get(f"/{text}/{number}")
        await client.request("BREW", f"/{text}")
        await client.request(f"BREW{number}", "/decide", headers={text: text})
        await client.post(f"/decide?{text}={number}", json={text: text})
        await client.post("/decide", json=request_body(rubric={text: text}))
        await client.post("/decide", content=text, headers={"content-type": text})
        asked = {"type": "object", "properties": {text: {"enum": [text, "other"], "title": text}}}
        assert (await client.post("/decide", json={"state": text, "rubric": asked})).status_code == 200

    await ask(0)
    await client.get("/metrics")
    before = set(await samples(client))
    for number in range(1, 20):
        await ask(number)
    new = set(await samples(client)) - before
    # Which outcome an answer has is chance; all else was seen in the first round.
    assert {name for name in new if "outcome" not in name and "decide_stop_reasons" not in name} == set()
    assert CANARY not in (await client.get("/metrics")).text
