"""A calibration file for a running service, from requests whose answers are known."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from bench.calibration import Fit, Observed, fit, observed
from bench.client import connect
from bench.command import Command
from bench.decision_log import ask_all
from bench.reliability_plot import plot_reliability
from bench.table import render_table

HEADER = ("kind", "answers", "temperature", "loss", "after", "calibration error", "after", "Brier", "after")


async def calibrate(arguments: Namespace) -> str:
    """Ask every case, once and read once, fit a temperature per kind, and write the file; the table."""
    cases = [json.loads(line) for line in arguments.cases.read_text(encoding="utf-8").splitlines()]
    async with connect(arguments.url) as client:
        model = (await client.get("/health")).raise_for_status().json()["model"]
        seen = await observe(client, cases)
    kinds = sorted({one.kind for one in seen})
    fits = [found for kind in kinds if (found := fit(kind, [one for one in seen if one.kind == kind]))]
    temperatures = {found.kind: found.temperature for found in fits}
    arguments.out.write_text(json.dumps({"model": model, "temperatures": temperatures}, indent=1) + "\n")
    if arguments.plot:
        plot_reliability(_series(fits), arguments.plot)
    table = render_table("Calibration, each half by the other's temperature", HEADER, list(map(_row, fits)))
    few = f"Too few answers are known of: {', '.join(sorted(set(kinds) - set(temperatures))) or 'no kind'}."
    return f"{table}\n\n{few}\n{arguments.out} has the temperatures: DECIDE_CALIBRATION={arguments.out}"


async def observe(client: httpx.AsyncClient, cases: Sequence[Mapping[str, Any]]) -> list[Observed]:
    """The slots of all cases whose right option is known."""
    requests = [_request(case) for case in cases]
    checks = [await client.post("/rubrics/check", json={"rubric": case["rubric"]}) for case in cases]
    answers = await ask_all(client, requests)
    seen: list[Observed] = []
    for number, (case, check, answer) in enumerate(zip(cases, checks, answers, strict=True), start=1):
        kinds = {one["id"]: one["kind"] for one in check.raise_for_status().json()["questions"]}
        for question, expected in case["expected"].items():
            seen += observed(number, kinds[question], answer["answers"][question], expected)
    return seen


def _request(case: Mapping[str, Any]) -> dict[str, Any]:
    """One read: probabilities of several are a mean, from which temperatures cannot be taken out again."""
    asked = {key: case[key] for key in ("state", "rubric", "instructions") if key in case}
    return {**asked, "policy": {**case.get("policy", {}), "max_reads": 1}}


def _row(found: Fit) -> tuple[object, ...]:
    figures = [f"{figure:.4f}" for pair in zip(found.before, found.after, strict=True) for figure in pair]
    return found.kind, found.answers, f"{found.temperature:.3f}", *figures


def _series(fits: Sequence[Fit]) -> dict[str, Any]:
    before = {f"{found.kind} before": found.bins_before for found in fits}
    return before | {f"{found.kind} after": found.bins_after for found in fits}


def _add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="of the service (default %(default)s)")
    parser.add_argument(
        "--cases", type=Path, default=Path("labelled.jsonl"), help="JSON lines of state, rubric, expected"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("calibration.json"), help="file to write (default %(default)s)"
    )
    parser.add_argument("--plot", type=Path, help="PNG file to write the reliability to")


CALIBRATE = Command(
    about="fit a temperature per kind of question on labelled requests", add_options=_add_options, measure=calibrate
)
