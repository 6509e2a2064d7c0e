"""Conditions: when a question is asked.

`if` is a schema of the decision so far, so it may say more than a question's schema: it is rebuilt here of keywords
that are cheap to check, and evaluated by `jsonschema` on the object that holds the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry

from app.canvas.alternatives import JSON_TYPES, MAX_TYPES
from app.canvas.json import Json
from app.canvas.keyword import CONSTRAINING
from app.canvas.option import is_scalar
from app.canvas.site import Path, Reader, Site

Names = tuple[str, ...]

# A list has up to 255 items, each of them checked; that is about as long as checking so many objects takes.
CONTAINS_NODES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Something that an object of the decision must, or must not, be.

    Attributes:
        validator: checks the object that holds the question.
        is_wanted: whether it must be valid.
        mentions: the properties it looks at, as paths below that object.
        place: where the rubric says it.
    """

    validator: Draft202012Validator
    is_wanted: bool
    mentions: frozenset[Names]
    place: Path

    def holds(self, parent: Mapping[str, Json]) -> bool:
        """Whether it holds for the part of the decision that is known."""
        return self.validator.is_valid(parent) is self.is_wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionSchema:
    """An `if` that was understood.

    Attributes:
        schema: it again, of nothing but what was understood.
        mentions: see `Condition`.
    """

    schema: Json
    mentions: frozenset[Names]

    def condition(self, place: Path, *, is_wanted: bool = True) -> Condition:
        """That it holds, or that it does not."""
        return Condition(
            validator=make_validator(self.schema), is_wanted=is_wanted, mentions=self.mentions, place=place
        )


def make_validator(schema: Json) -> Draft202012Validator:
    """A validator that can look nothing up: its registry is empty, and formats are not checked."""
    assert isinstance(schema, Mapping | bool), "not a schema; this is a bug"
    return Draft202012Validator(schema, registry=Registry())


def is_present(name: str) -> ConditionSchema:
    """The condition that a property is there."""
    return ConditionSchema(schema={"required": [name]}, mentions=frozenset({(name,)}))


class ConditionParser:
    """Understands the conditions of one rubric."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def parse(self, value: Json, path: Path, around: Site) -> ConditionSchema:
        """Understand an `if`. Complains about everything wrong; what it returns then is not used."""
        mentions: set[Names] = set()
        understood: dict[str, Json] = {"if": True}
        stack = [_Part(value=value, path=path, around=around, names=(), into=understood, key="if")]
        while stack:
            part = stack.pop()
            if isinstance(part.value, bool):
                part.put(part.value)
                continue
            site = self._reader.open(part.value, part.path, part.around)
            if site is None:
                continue
            schema: dict[str, Json] = {}
            part.put(schema)
            for keyword in site.schema:
                stack.extend(self._parts(keyword, site, part.names, schema))
            mentions.update(_mentioned(site, part.names))
        return ConditionSchema(schema=understood["if"], mentions=frozenset(mentions))

    def _parts(self, keyword: str, site: Site, names: Names, schema: dict[str, Json]) -> list[_Part]:
        """The schemas below a keyword; a value is kept as it is."""
        content, path = site.schema[keyword], site.at(keyword)
        if isinstance(content, list | Mapping):
            self._reader.visit(path, len(content))
        if keyword in VALUES:
            if not VALUES[keyword](content):
                self._reader.complain(path, "bad_condition", "this keyword cannot have that value here")
            for text in content if isinstance(content, list) else [content]:
                if isinstance(text, str):
                    self._reader.count_chars(path, text)
            schema[keyword] = content
        elif keyword in SCHEMAS:
            if keyword == "contains":
                self._check_contained(content, path)
            return [_Part(value=content, path=path, around=site, names=names, into=schema, key=keyword)]
        elif keyword in LISTS and isinstance(content, list) and content:
            entries: list[Json] = [True] * len(content)
            schema[keyword] = entries
            return [
                _Part(value=value, path=(*path, i), around=site, names=names, into=entries, key=i)
                for i, value in enumerate(content)
            ]
        elif keyword == "properties" and isinstance(content, Mapping):
            properties: dict[str, Json] = {}
            schema[keyword] = properties
            return [
                _Part(value=value, path=(*path, name), around=site, names=(*names, name), into=properties, key=name)
                for name, value in content.items()
            ]
        elif keyword in CONSTRAINING:
            self._reader.complain(path, "unsupported_keyword", "this keyword is not in the language of conditions here")
        return []

    def _check_contained(self, schema: Json, path: Path) -> None:
        """What is asked of each item of a list counts for each item."""
        self._reader.visit(path, CONTAINS_NODES)
        if not isinstance(schema, Mapping) or not schema.keys() & CONSTRAINING <= {"const", "enum", "type"}:
            self._reader.complain(path, "bad_condition", 'an item can only be asked for by "const" or "enum"')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A schema still to be understood: what and where it is, the property it is said of, and where the result goes."""

    value: Json
    path: Path
    around: Site
    names: Names
    into: Any
    key: str | int

    def put(self, schema: Json) -> None:
        self.into[self.key] = schema


def _mentioned(site: Site, names: Names) -> Iterator[Names]:
    """The properties that a schema looks at."""
    for keyword in ("properties", "required"):
        content = site.schema.get(keyword, ())
        if isinstance(content, Mapping | list):
            yield from ((*names, name) for name in content if isinstance(name, str))


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and is_scalar(value)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and _is_number(value) and value >= 0


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_enum(value: Json) -> bool:
    return isinstance(value, list) and all(map(is_scalar, value))


def _is_type(value: Json) -> bool:
    names = value if isinstance(value, list) else [value]
    return 1 <= len(names) <= MAX_TYPES and all(isinstance(name, str) and name in TYPES for name in names)


TYPES = frozenset({*JSON_TYPES, "array", "object"})
VALUES: dict[str, Callable[[Json], bool]] = {
    "const": is_scalar,
    "enum": _is_enum,
    "type": _is_type,
    "required": _are_texts,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minItems", "maxItems", "minContains", "maxContains"), _is_count),
}
SCHEMAS = frozenset({"not", "contains"})
LISTS = frozenset({"allOf", "anyOf", "oneOf"})
