"""The fields of a decision: what stands where, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.canvas.condition import Condition
from app.canvas.json import Json, JsonScalar
from app.canvas.question import Question
from app.canvas.site import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A property with one possible value: nothing is asked."""

    value: JsonScalar


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A nested object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One property of the decision.

    Attributes:
        path: property names from the root.
        content: what stands there.
        conditions: it is there if one of these sets holds as a whole; none: always. Whatever they say, it is not there
            where the object around it is not.
        place: where the rubric declares it.
    """

    path: tuple[str, ...]
    content: Question | Constant | Group
    conditions: tuple[tuple[Condition, ...], ...] = ()
    place: Path = ()


class _Object(dict[str, Json]):
    """An object of a decision, which does not spell itself out.

    `jsonschema` writes what it checks into the message of every check that fails, also those of conditions, which
    nobody reads: that would take the length of the decision as often as there are conditions.
    """

    def __repr__(self) -> str:
        return "an object"


class _List(list[Json]):
    """A list in a decision, which does not spell itself out either."""

    def __repr__(self) -> str:
        return "a list"


def build_decision(fields: Sequence[Field], values: Mapping[tuple[str, ...], Json]) -> dict[str, Json]:
    """The decision: an instance of the rubric.

    Args:
        fields: every object ahead of what it holds, every property ahead of conditions that mention it.
        values: per question's path, the value of its answer.
    """
    decision = _Object()
    known: dict[int, bool] = {}
    for field in fields:
        parent = _object_at(decision, field.path[:-1])
        if parent is not None and _is_there(field, parent, known):
            parent[field.path[-1]] = _quiet(_content(field, values))
    return decision


def is_answered(decision: Mapping[str, Json], path: tuple[str, ...]) -> bool:
    """Whether a decision holds a property."""
    parent = _object_at(decision, path[:-1])
    return parent is not None and path[-1] in parent


def _content(field: Field, values: Mapping[tuple[str, ...], Json]) -> Json:
    match field.content:
        case Question() as question:
            return question.decided(values[field.path])
        case Constant(value=value):
            return value
        case _:
            return {}


def _quiet(value: Json) -> Json:
    if isinstance(value, dict):
        return _Object(value)
    return _List(value) if isinstance(value, list) else value


def _is_there(field: Field, parent: Mapping[str, Json], known: dict[int, bool]) -> bool:
    alternatives = (all(_holds(condition, parent, known) for condition in every) for every in field.conditions)
    return not field.conditions or any(alternatives)


def _holds(condition: Condition, parent: Mapping[str, Json], known: dict[int, bool]) -> bool:
    """Looked at once: whatever it mentions is decided by the time something depends on it."""
    if id(condition) not in known:
        known[id(condition)] = condition.holds(parent)
    return known[id(condition)]


def _object_at(decision: Mapping[str, Json], path: tuple[str, ...]) -> dict[str, Json] | None:
    """The object at a path; None where the decision has none."""
    found: Json = decision
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
