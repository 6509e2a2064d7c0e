"""What routes of other protocols say of themselves is what they do."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.envelopes import OPENAI_NO_MODEL, OPENAI_WORDS, SYSTEM_ONE_NO_KEY, SYSTEM_ONE_WORDS, Words
from app.problems import HTTP_ROWS, TABLE
from tests.app.protocol_bodies import DECISIONS, SYSTEM_ONE

STATUSES = {row.code: row.status for row in (*TABLE.values(), *HTTP_ROWS.values())}


def statuses(words: dict[str, Words], *others: Words) -> set[str]:
    """Every status that a protocol refuses with, but those of paths and methods that are not there."""
    known = {code: said.status or STATUSES[code] for code, said in words.items()}
    reached = {status for code, status in known.items() if code not in ("not_found", "method_not_allowed")}
    return set(map(str, reached | {said.status for said in others if said.status}))


@pytest.mark.parametrize(
    ("path", "expected", "shape"),
    [
        ("/v1/systemone", statuses(dict(SYSTEM_ONE_WORDS), SYSTEM_ONE_NO_KEY), "detail"),
        ("/v1/decisions", statuses(dict(OPENAI_WORDS), OPENAI_NO_MODEL), "error"),
    ],
)
async def test_every_refusal_is_documented(
    client: httpx.AsyncClient, path: str, expected: set[str], shape: str
) -> None:
    """C1: each status, with its schema, and no other."""
    described = (await client.get("/openapi.json")).json()["paths"][path]["post"]["responses"]
    assert described.keys() == {"200"} | expected
    for status in expected:
        assert set(described[status]["content"]["application/json"]["schema"]["properties"]) == {shape}


@pytest.mark.parametrize(("path", "body"), [("/v1/systemone", SYSTEM_ONE), ("/v1/decisions", DECISIONS)])
async def test_what_is_not_offered_is_counted(client: httpx.AsyncClient, path: str, body: dict[str, Any]) -> None:
    """P4: under a code of ours, as everything that is turned away."""
    assert (await client.post(path, json=body)).status_code == 200
    assert (await client.post(path, json={**body, "model": "another"})).status_code in (400, 404)
    assert 'decide_rejected_total{reason="not_offered"} 1.0' in (await client.get("/metrics")).text
