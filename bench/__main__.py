"""Entry point: `python -m bench COMMAND`."""

from __future__ import annotations

import argparse
import asyncio

from bench.first_requests import measure_first_requests
from bench.overhead import measure_overhead

COMMANDS = {
    "first-requests": (measure_first_requests, "200 requests of mixed widths, sizes and batches: is there a stall?"),
    "overhead": (measure_overhead, "wall time outside engine steps, one client"),
}


def main() -> None:
    """Run one measurement and print its table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, (_, about) in COMMANDS.items():
        command = commands.add_parser(name, help=about, description=about)
        command.add_argument("--url", default="http://127.0.0.1:8000", help="a running service")
    arguments = parser.parse_args()
    measure, _ = COMMANDS[arguments.command]
    print(asyncio.run(measure(arguments.url)))


if __name__ == "__main__":
    main()
