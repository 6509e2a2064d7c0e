"""The kinds of question: how each is written in JSON Schema.

A kind is one class here with one entry in `KINDS`. It says which property schemas are its own, which keywords it takes,
and which options follow. The first kind that claims a schema gets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeGuard

from app.canvas.json import Json, JsonScalar, one_line, to_text
from app.canvas.keyword import CONSTRAINING
from app.canvas.question import Kind, Option

MAX_SCORE_LEVELS = 10


class Complaints(Protocol):
    """Where a kind reports what is wrong with a property: path below the property, code, message."""

    def __call__(self, path: tuple[str | int, ...], code: str, message: str) -> None: ...


class QuestionKind(Protocol):
    """How one kind of question is written in JSON Schema.

    Attributes:
        keywords: the validation keywords it understands; every other one in the property is refused.
    """

    kind: Kind
    keywords: frozenset[str]

    def claims(self, schema: Mapping[str, Json]) -> bool:
        """Whether this property schema is a question of this kind."""
        ...

    def options(self, schema: Mapping[str, Json], max_options: int, complain: Complaints) -> tuple[Option, ...]:
        """The options, in order. Complains about everything wrong; what it returns then is not used."""
        ...


def is_scalar(value: Json) -> TypeGuard[JsonScalar]:
    """Whether a value may be an option: string, number, boolean or null."""
    return value is None or isinstance(value, str | int | float)


def make_option(value: JsonScalar, title: str = "", description: str = "") -> Option:
    """An option whose prompt text is its title or its value, with the description after it."""
    key = to_text(value)
    shown = one_line(title) or ("none of these" if value is None else one_line(key) or '""')
    details = one_line(description)
    return Option(value=value, key=key, text=f"{shown}: {details}" if details else shown)


class BooleanKind:
    """`{"type": "boolean"}`: yes or no."""

    kind = Kind.BOOLEAN
    keywords = frozenset({"type"})

    def claims(self, schema: Mapping[str, Json]) -> bool:
        return schema.get("type") == "boolean" and not schema.keys() & {"enum", "oneOf"}

    def options(self, schema: Mapping[str, Json], max_options: int, complain: Complaints) -> tuple[Option, ...]:
        return (make_option(True, title="yes"), make_option(False, title="no"))


class EnumKind:
    """`{"enum": [...]}`: one of several values."""

    kind = Kind.CHOICE
    keywords = frozenset({"type", "enum"})

    def claims(self, schema: Mapping[str, Json]) -> bool:
        return "enum" in schema and "oneOf" not in schema

    def options(self, schema: Mapping[str, Json], max_options: int, complain: Complaints) -> tuple[Option, ...]:
        values = schema["enum"]
        if not _is_option_list(values, max_options):
            complain(("enum",), "bad_options", f"must be an array of 2 to {max_options} values")
            return ()
        for index, value in enumerate(values):
            if not is_scalar(value):
                complain(("enum", index), "bad_option", "must be a string, a number, a boolean or null")
        return tuple(make_option(value) for value in values if is_scalar(value))


class OneOfKind:
    """`{"oneOf": [{"const", "title"?, "description"?}, ...]}`: one of several values, each explained."""

    kind = Kind.CHOICE
    keywords = frozenset({"type", "oneOf"})

    def claims(self, schema: Mapping[str, Json]) -> bool:
        return "oneOf" in schema

    def options(self, schema: Mapping[str, Json], max_options: int, complain: Complaints) -> tuple[Option, ...]:
        branches = schema["oneOf"]
        if not _is_option_list(branches, max_options):
            complain(("oneOf",), "bad_options", f'must be an array of 2 to {max_options} objects with "const"')
            return ()
        found = (_const_option(branch, ("oneOf", index), complain) for index, branch in enumerate(branches))
        return tuple(option for option in found if option is not None)


class ScoreKind:
    """`{"type": "integer", "minimum", "maximum"}`: ordered levels."""

    kind = Kind.SCORE
    keywords = frozenset({"type", "minimum", "maximum"})

    def claims(self, schema: Mapping[str, Json]) -> bool:
        return schema.get("type") == "integer"

    def options(self, schema: Mapping[str, Json], max_options: int, complain: Complaints) -> tuple[Option, ...]:
        low, high = (self._bound(schema, keyword, complain) for keyword in ("minimum", "maximum"))
        if low is None or high is None:
            return ()
        if not 2 <= high - low + 1 <= MAX_SCORE_LEVELS:
            complain((), "bad_levels", f"minimum and maximum must span 2 to {MAX_SCORE_LEVELS} levels")
            return ()
        return tuple(make_option(level) for level in range(low, high + 1))

    def _bound(self, schema: Mapping[str, Json], keyword: str, complain: Complaints) -> int | None:
        bound = schema.get(keyword)
        if isinstance(bound, int) and not isinstance(bound, bool):
            return bound
        complain((keyword,) if keyword in schema else (), "bad_bound", f'"{keyword}" must be given as an integer')
        return None


KINDS: tuple[QuestionKind, ...] = (OneOfKind(), EnumKind(), BooleanKind(), ScoreKind())


def _is_option_list(values: Json, max_options: int) -> TypeGuard[list[Json]]:
    return isinstance(values, list) and 2 <= len(values) <= max_options


def _const_option(branch: Json, path: tuple[str | int, ...], complain: Complaints) -> Option | None:
    value = branch.get("const", ()) if isinstance(branch, Mapping) else ()
    if not isinstance(branch, Mapping) or not is_scalar(value):
        complain(path, "bad_option", 'must be an object with a scalar "const"')
        return None
    for keyword in branch:
        if keyword in CONSTRAINING and keyword != "const":
            complain((*path, keyword), "unsupported_keyword", 'an option is a "const" and nothing that constrains it')
    texts = {}
    for keyword in ("title", "description"):
        text = branch.get(keyword, "")
        if not isinstance(text, str):
            complain((*path, keyword), "bad_text", "must be a string")
            text = ""
        texts[keyword] = text
    return make_option(value, texts["title"], texts["description"])
