"""A log of the public cases to replay: what this server answers to them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from bench.client import connect
from bench.command import Command
from bench.decision_log import Entry, ask_all, write_log
from bench.public_cases import load_public_cases

LOG = Path("decisions.jsonl")


async def record(arguments: Namespace) -> str:
    """Ask every case and write the log; says how many it holds."""
    async with connect(arguments.url) as client:
        requests = [_request(case.state, case.rubric, arguments.max_reads) for case in load_public_cases()]
        answers = await ask_all(client, requests)
    made = zip(requests, answers, strict=True)
    write_log(arguments.log, (Entry(request=request, response=answer) for request, answer in made))
    return f"{len(answers)} decisions are in {arguments.log}"


def _request(state: str, rubric: Any, max_reads: int) -> dict[str, Any]:
    return {"state": state, "rubric": rubric, "policy": {"max_reads": max_reads}}


def add_log_options(parser: ArgumentParser) -> None:
    """Where the service is, and the log."""
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the service (default %(default)s)")
    parser.add_argument("--log", type=Path, default=LOG, help="JSON lines (default %(default)s)")


def _add_options(parser: ArgumentParser) -> None:
    add_log_options(parser)
    parser.add_argument("--max-reads", type=int, default=1, help="of each decision (default %(default)s)")


RECORD = Command(about="ask the 240 public cases and keep the answers", add_options=_add_options, measure=record)
