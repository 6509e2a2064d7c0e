"""What other protocols ask, as a rubric: from there on a request of theirs is one of `/decide`.

A question's property is its number and an option's value its place in the list, whatever the caller calls them. So
requests that differ in names alone ask the same rubric, and no two names can be mistaken for one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from app.canvas.errors import Problem, RubricRejected
from app.canvas.json import Json, JsonScalar, count_values, one_line, pointer, to_text, unescape
from app.decisions import CHARS_PER_NODE, DecisionRequest
from app.errors import SchemaRejected
from app.offload import INLINE_SIZE

Place = tuple[str | int, ...]
Q = TypeVar("Q")

OPTION_DESCRIPTIONS = "x-option-descriptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Where the caller wrote a question, and what its parts are called there.

    Attributes:
        options: the field with the options.
        keys: of each option, in that field.
    """

    place: Place
    options: str
    keys: Sequence[str | int]

    def place_of(self, rest: Sequence[str]) -> Place:
        """The place of a part of the property."""
        match rest:
            case ["title", *_]:
                return (*self.place, "instructions")
            case ["oneOf" | "x-option-descriptions", str(key), *_]:
                number = int(key) if key.isdecimal() else ("true", "false").index(key)
                return (*self.place, self.options, self.keys[number])
            case [_, *_]:
                return (*self.place, self.options)
            case _:
                return self.place


class Questionnaire:
    """Questions, in the order in which they are asked."""

    def __init__(self) -> None:
        self._properties: dict[str, Json] = {}
        self._asked: list[_Asked] = []

    @property
    def rubric(self) -> dict[str, Json]:
        """All of them, as JSON Schema."""
        return {"type": "object", "properties": self._properties}

    def ask_yes_no(self, place: Place, text: str, *, yes: str = "", no: str = "") -> None:
        """Whether something is so. The descriptions say when it is, and when not; they stand in `criteria`."""
        schema = {"type": "boolean", **_described({"true": yes, "false": no})}
        self._ask(_Asked(place=place, options="criteria", keys=("true", "false")), text, schema)

    def ask_choice(
        self, place: Place, text: str, options: str, keys: Sequence[str | int], described: Iterable[tuple[str, str]]
    ) -> None:
        """One of several, by their keys in the field `options`: what each is called, and when it holds."""
        schemas = [_option(number, *texts) for number, texts in enumerate(described)]
        self._ask(_Asked(place=place, options=options, keys=keys), text, {"oneOf": schemas})

    def ask_score(self, place: Place, text: str, options: str, levels: Sequence[str]) -> None:
        """One of several levels in the field `options`, from 0 on: what each is like."""
        texts = {str(number): level for number, level in enumerate(levels)}
        schema = {"type": "integer", "minimum": 0, "maximum": len(levels) - 1, **_described(texts)}
        self._ask(_Asked(place=place, options=options, keys=range(len(levels))), text, schema)

    @contextmanager
    def in_its_own_words(self) -> Iterator[None]:
        """What is wrong with the rubric is wrong with the questions: problems name places of the caller's body."""
        try:
            yield
        except RubricRejected as rejected:
            raise RubricRejected(self._translated(rejected.problems)) from None
        except SchemaRejected as rejected:
            raise SchemaRejected(*self._translated(rejected.problems)) from None

    def _ask(self, asked: _Asked, text: str, schema: Mapping[str, Json]) -> None:
        title = {"title": text} if text else {}
        self._properties[str(len(self._asked))] = {**title, **schema}
        self._asked.append(asked)

    def _translated(self, problems: Sequence[Problem]) -> tuple[Problem, ...]:
        places = (self._place_of(problem.pointer.split("/")[1:]) for problem in problems)
        return tuple(replace(problem, pointer=pointer(*place)) for problem, place in zip(problems, places, strict=True))

    def _place_of(self, ours: Sequence[str]) -> Place:
        match ours:
            case ["rubric", "properties", str(number), *rest]:
                return self._asked[int(number)].place_of(rest)
            case ["rubric", *_]:
                return ("questions",)
            case ["policy", *rest]:
                return ("x_policy", *map(unescape, rest))
            case _:
                return tuple(map(unescape, ours))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry(Generic[Q]):
    """What was asked in another protocol.

    Attributes:
        request: the same, in this service's own terms.
        questions: as the caller wrote them, in the order of the request's.
    """

    request: DecisionRequest
    questionnaire: Questionnaire
    questions: Q


def size_of(body: Json) -> int:
    """About how much there is to understand in a body, in characters; of a large one, more than is done at once."""
    return count_values(body, INLINE_SIZE // CHARS_PER_NODE) * CHARS_PER_NODE


def text_of(value: Json) -> str:
    """A text that may be structured: a string as it is, nothing as nothing, anything else as compact JSON."""
    return "" if value is None else to_text(value)


def name_of(value: JsonScalar) -> str:
    """What the model is shown for a value that a caller calls an option."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(to_text(value)) or '""'


def _option(number: int, name: str, description: str) -> dict[str, Json]:
    return {"const": number, "title": name, **({"description": description} if description else {})}


def _described(texts: Mapping[str, str]) -> dict[str, Json]:
    given = {key: text for key, text in texts.items() if text}
    return {OPTION_DESCRIPTIONS: given} if given else {}
