"""A log of requests and answers, as a caller keeps it: JSON lines of `request`, `response`, and `expected` where it is
known. The service itself writes no such thing, for it would hold what people say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

CLIENTS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One decision.

    Attributes:
        request, response: bodies of `/decide`.
        expected: values that would be right, by the question's id, as far as they are known.
    """

    request: Mapping[str, Any]
    response: Mapping[str, Any]
    expected: Mapping[str, Any] = field(default_factory=dict)


def read_log(file: Path) -> list[Entry]:
    """The entries of a file.

    Raises:
        ValueError: a line is no entry; which one is said.
    """
    entries = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            entries.append(_entry(json.loads(line)))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(f"line {number} of the log is no decision") from None
    return entries


def _entry(line: Mapping[str, Any]) -> Entry:
    """Whatever else the caller keeps in a line is his own."""
    return Entry(request=line["request"], response=line["response"], expected=line.get("expected", {}))


def write_log(file: Path, entries: Iterable[Entry]) -> None:
    """Write a file of entries."""
    lines = (json.dumps(asdict(one), ensure_ascii=False) for one in entries)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


async def ask_all(client: httpx.AsyncClient, requests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The answers to all requests, in order; several at a time."""
    turns = asyncio.Semaphore(CLIENTS)

    async def ask(request: Mapping[str, Any]) -> dict[str, Any]:
        async with turns:
            response = await client.post("/decide", json=request)
        answer: dict[str, Any] = response.raise_for_status().json()
        return answer

    return await asyncio.gather(*map(ask, requests))
