"""A command of `python -m bench`: what it measures, its options, and how they are read."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One measurement.

    Attributes:
        about: what `--help` says.
        add_options: declares its options.
        measure: takes them and returns the tables to print.
    """

    about: str
    add_options: Callable[[ArgumentParser], None]
    measure: Callable[[Namespace], Coroutine[Any, Any, str]]


def service_command(measure: Callable[[str], Coroutine[Any, Any, str]], about: str) -> Command:
    """A measurement of a service that is running already."""
    return Command(about=about, add_options=_add_url, measure=lambda arguments: measure(arguments.url))


def positive(text: str) -> int:
    """An option that counts something."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _add_url(parser: ArgumentParser) -> None:
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="a running service")
