"""A client that times what it asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """One answered request: wall time at the client, and what the answer says of the service and of the engine."""

    wall_ms: float
    total_ms: float
    engine_ms: float
    engine_steps: int

    @property
    def overhead_ms(self) -> float:
        """Wall time outside engine steps, this client's own work included."""
        return self.wall_ms - self.engine_ms

    @property
    def service_overhead_ms(self) -> float:
        """Time in the service outside engine steps, from the parsed request to the decision."""
        return self.total_ms - self.engine_ms


async def ask(client: httpx.AsyncClient, body: dict[str, Any]) -> Timed:
    """Ask one request, read once, and wait for its answer."""
    started = time.perf_counter()
    response = await client.post("/decide", json={**body, "policy": {"max_reads": 1}})
    wall_ms = (time.perf_counter() - started) * 1000
    answer = response.raise_for_status().json()
    return Timed(
        wall_ms=wall_ms,
        total_ms=answer["timing"]["total_ms"],
        engine_ms=answer["timing"]["engine_ms"],
        engine_steps=answer["usage"]["engine_steps"],
    )


async def ask_together(client: httpx.AsyncClient, bodies: Sequence[dict[str, Any]]) -> list[Timed]:
    """Ask several requests at once."""
    return await asyncio.gather(*(ask(client, body) for body in bodies))


def connect(url: str) -> httpx.AsyncClient:
    """A client of a running service."""
    return httpx.AsyncClient(base_url=url, timeout=120)


def quantiles(name: str, values: Sequence[float]) -> str:
    """A line of a table: p50, p95 and maximum, in milliseconds."""
    at = [quantile(values, share) for share in (0.5, 0.95, 1.0)]
    return f"{name:32} p50 {at[0]:8.2f}   p95 {at[1]:8.2f}   max {at[2]:8.2f} ms   n {len(values)}"


def quantile(values: Sequence[float], share: float) -> float:
    """Nearest rank; 0 of nothing."""
    return sorted(values)[int(share * (len(values) - 1))] if values else 0.0
