"""Whether a service is after a long load what it was before it: memory, files, threads, KV blocks."""

from __future__ import annotations

import asyncio
import re
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import psutil

from bench.client import connect
from bench.command import Command, positive
from bench.load import load
from bench.table import render_table

MINUTES, PARTS = 10, 10
WARM_UP_SECONDS, REST_SECONDS = 20.0, 5.0
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What a resting service has in use.

    Attributes:
        memory_bytes: resident, of its own process.
        engine_memory_bytes: resident, of the engine's.
        kv_cache_share: of blocks that requests hold.
    """

    memory_bytes: int
    engine_memory_bytes: int
    files: int
    threads: int
    processes: int
    kv_cache_share: float
    inflight: float

    @classmethod
    async def of(cls, client: httpx.AsyncClient, process: psutil.Process) -> Condition:
        """As it is now."""
        page = (await client.get("/metrics")).text
        children = process.children(recursive=True)
        return cls(
            memory_bytes=process.memory_info().rss,
            engine_memory_bytes=sum(child.memory_info().rss for child in children),
            files=process.num_fds(),
            threads=process.num_threads(),
            processes=len(children),
            kv_cache_share=_gauge(page, r"vllm:kv_cache_usage_perc\{[^}]*\}"),
            inflight=_gauge(page, "decide_inflight"),
        )


async def measure_soak(arguments: Namespace) -> str:
    """A row at the beginning, and one after each part of the load."""
    part_seconds = arguments.minutes * 60 / PARTS
    found = await soak(arguments.url, clients=arguments.clients, parts=PARTS, part_seconds=part_seconds)
    return _table([(f"{part * part_seconds / 60:g} min", *one) for part, one in enumerate(found)])


async def soak(
    url: str,
    *,
    clients: int,
    parts: int,
    part_seconds: float,
    warm_up_seconds: float = WARM_UP_SECONDS,
    rest_seconds: float = REST_SECONDS,
) -> list[tuple[Condition, int]]:
    """The condition of a service at rest, warmed up, and after each part of a load that it can bear; with how many
    requests each part had answered."""
    process = listener(url)
    found: list[tuple[Condition, int]] = []
    async with connect(url) as client:
        for seconds in (warm_up_seconds, *[part_seconds] * parts):
            made = await load(url, clients=clients, seconds=seconds, max_reads=4)
            if made.statuses.keys() != {200}:
                raise RuntimeError(f"statuses of a load that fits: {dict(made.statuses)}")
            await asyncio.sleep(rest_seconds)
            found.append((await Condition.of(client, process), made.statuses[200]))
    return found


def listener(url: str) -> psutil.Process:
    """The process that listens on this port of this machine."""
    port = urlsplit(url).port
    (pid,) = {
        one.pid
        for one in psutil.net_connections("tcp")
        if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port and one.pid
    }
    return psutil.Process(pid)


def _gauge(page: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", page, re.MULTILINE)
    if found is None:
        raise LookupError(f"/metrics has no {name}")
    return float(found[1])


def _table(conditions: list[tuple[str, Condition, int]]) -> str:
    rows = [
        (
            when,
            answered,
            f"{one.memory_bytes / MEBIBYTE:.1f}",
            f"{one.engine_memory_bytes / MEBIBYTE:.1f}",
            one.files,
            one.threads,
            one.processes,
            f"{one.kv_cache_share:.4f}",
            f"{one.inflight:g}",
        )
        for when, one, answered in conditions
    ]
    header = ("at rest", "answered", "MiB", "MiB, engine", "files", "threads", "processes", "KV in use", "in flight")
    return render_table("In use", header, rows)


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of a service on this machine")
    parser.add_argument("--minutes", type=positive, default=MINUTES, help="of load (default %(default)s)")
    parser.add_argument("--clients", type=positive, default=3, help="callers: three keep two cores 80 %% busy")


SOAK = Command(
    about="memory, files, threads and KV blocks under long load", add_options=_add_options, measure=measure_soak
)
