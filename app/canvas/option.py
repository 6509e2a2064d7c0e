"""Options: what a question may be answered with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TypeGuard

from app.canvas.json import Json, JsonScalar, identity, one_line, to_text

# Python cannot write integers of any length.
LARGEST_INTEGER = 10**100


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One admissible answer.

    Attributes:
        value: what stands in the decision.
        key: what stands in `probabilities`: the value itself when it is a string, else its JSON text.
        name: what the prompt calls it.
        text: what the prompt shows for it: its name, and what explains it.
    """

    value: JsonScalar
    key: str
    name: str
    text: str


def make_option(value: JsonScalar, title: str = "", description: str = "") -> Option:
    """An option whose prompt text is its title or its value, with the description after it."""
    name = one_line(title) or _shown(value)
    return explain(Option(value=value, key=to_text(value), name=name, text=name), description)


def explain(option: Option, description: str) -> Option:
    """The option with a description after its text."""
    details = one_line(description)
    return replace(option, text=f"{option.text}: {details}") if details else option


def is_scalar(value: Json) -> TypeGuard[JsonScalar]:
    """Whether a value may be an option: string, number, boolean or null."""
    if isinstance(value, float):
        return isfinite(value)
    return value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) <= LARGEST_INTEGER)


def find_option(options: Sequence[Option], value: Json) -> Option | None:
    """The option of that value, if there is one."""
    if not is_scalar(value):
        return None
    return next((option for option in options if identity(option.value) == identity(value)), None)


def _shown(value: JsonScalar) -> str:
    match value:
        case None:
            return "none of these"
        case True:
            return "yes"
        case False:
            return "no"
        case _:
            return one_line(to_text(value)) or '""'


YES = make_option(True)
NO = make_option(False)
