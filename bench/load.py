"""Callers in a closed loop against a running service, and probes beside them."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from random import Random
from typing import Any

import httpx

from bench.first_requests import body

PROBED = ("/health", "/metrics")
PROBE_EVERY_SECONDS = 0.1
# How long a caller that was turned away waits: far less than it is told to, so that there is a crowd at the door.
TURNED_AWAY_SECONDS = (0.05, 0.5)


@dataclass(slots=True)
class Load:
    """What callers got.

    Attributes:
        statuses: how often each was answered; 0 for a connection that failed.
        seconds: of each request that was accepted and answered.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)


async def load(url: str, *, clients: int, seconds: float, max_reads: int = 1) -> Load:
    """So many callers for so long, each asking the next request when it has been answered the last."""
    made, end = Load(), time.perf_counter() + seconds
    # Each with a pool of its own: looking for a connection in one of hundreds takes longer than the answer. One context
    # for all of them, for it takes long to make, though nothing is encrypted here.
    context = ssl.create_default_context()

    async def call(number: int) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=120, verify=context) as client:
            await _call(client, number, end, made, max_reads)

    await asyncio.gather(*map(call, range(clients)))
    return made


async def load_and_probe(url: str, *, clients: int, seconds: float) -> tuple[Load, dict[str, list[float]]]:
    """A load, and how long probes took meanwhile: from a process of their own, for callers keep this one busy."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        probing = asyncio.get_running_loop().run_in_executor(pool, probe, url, seconds)
        made = await load(url, clients=clients, seconds=seconds)
        return made, await probing


def probe(url: str, seconds: float) -> dict[str, list[float]]:
    """Seconds that each probe took, every tenth of a second; one that was not answered as it should be raises."""
    took: dict[str, list[float]] = {path: [] for path in PROBED}
    end = time.perf_counter() + seconds
    with httpx.Client(base_url=url, timeout=30) as client:
        while time.perf_counter() < end:
            for path, seen in took.items():
                started = time.perf_counter()
                client.get(path).raise_for_status()
                seen.append(time.perf_counter() - started)
            time.sleep(PROBE_EVERY_SECONDS)
    return took


async def _call(client: httpx.AsyncClient, number: int, end: float, made: Load, max_reads: int) -> None:
    random, turn = Random(number), 0  # noqa: S311 - to be repeatable, not secret
    while time.perf_counter() < end:
        turn += 1
        asked: dict[str, Any] = {**body(number * 101 + turn, "load"), "policy": {"max_reads": max_reads}}
        started = time.perf_counter()
        try:
            status = (await client.post("/decide", json=asked)).status_code
        except httpx.TransportError:
            status = 0
        made.statuses[status] += 1
        if status == 200:
            made.seconds.append(time.perf_counter() - started)
        else:
            await asyncio.sleep(random.uniform(*TURNED_AWAY_SECONDS))
