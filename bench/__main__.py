"""Entry point: `python -m bench COMMAND`."""

from __future__ import annotations

import argparse
import asyncio

import bench
from bench.bundles import BUNDLES
from bench.calibrate import CALIBRATE
from bench.command import Command, service_command
from bench.demo.accuracy import ACCURACY
from bench.demo.relabelling import RELABELLING
from bench.first_requests import measure_first_requests
from bench.latency import LATENCY
from bench.overhead import measure_overhead
from bench.overload import OVERLOAD
from bench.questions import measure_questions
from bench.record import RECORD
from bench.replay import REPLAY
from bench.rereads import REREADS
from bench.soak import SOAK
from bench.steps import STEPS
from bench.system_one import SYSTEM_ONE

COMMANDS: dict[str, Command] = {
    "first-requests": service_command(
        measure_first_requests, "200 requests of mixed widths, sizes and batches: is there a stall?"
    ),
    "overhead": service_command(measure_overhead, "wall time outside engine steps, one client"),
    "questions": service_command(measure_questions, "what more questions cost, one client"),
    "steps": STEPS,
    "latency": LATENCY,
    "bundles": BUNDLES,
    "rereads": REREADS,
    "systemone": SYSTEM_ONE,
    "record": RECORD,
    "replay": REPLAY,
    "calibrate": CALIBRATE,
    "overload": OVERLOAD,
    "soak": SOAK,
    "accuracy": ACCURACY,
    "relabelling": RELABELLING,
}


def make_parser() -> argparse.ArgumentParser:
    """The parser of all commands and their options."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=bench.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.add_options(commands.add_parser(name, help=command.about, description=command.about))
    return parser


def main() -> None:
    """Run one measurement and print its tables."""
    arguments = make_parser().parse_args()
    print(asyncio.run(COMMANDS[arguments.command].measure(arguments)))


# vLLM starts its processes by importing this module again.
if __name__ == "__main__":
    main()
