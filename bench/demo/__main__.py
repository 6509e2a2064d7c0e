"""Entry point: `python -m bench.demo --vectors FILE --work FOLDER --checkpoint FOLDER`."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.command import positive
from bench.demo.recipe import Recipe

ROUNDS, THREADS = 1500, 2


def main() -> None:
    """Make the demo checkpoint, or go on making it."""
    parser = argparse.ArgumentParser(prog="python -m bench.demo", description=main.__doc__)
    parser.add_argument("--vectors", type=Path, required=True, help="JSON file of word vectors")
    parser.add_argument("--work", type=Path, required=True, help="where the run keeps its state, to go on from")
    parser.add_argument("--checkpoint", type=Path, required=True, help="where the result goes")
    parser.add_argument("--rounds", type=positive, default=ROUNDS, help="how long to train (default %(default)s)")
    parser.add_argument("--threads", type=positive, default=THREADS, help="cores to take (default %(default)s)")
    Recipe(**vars(parser.parse_args())).make()


if __name__ == "__main__":
    main()
