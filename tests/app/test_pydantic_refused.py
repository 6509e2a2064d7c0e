"""Models of pydantic that are no rubrics: refused, and the answer says which field it is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import httpx
import pytest
from pydantic import AnyUrl, BaseModel, Field, RootModel, SecretStr, StringConstraints, constr, create_model

from engine.fake import FakeEngine
from tests.app.json_pointer import follow


class Contact(BaseModel):
    urgent: bool


class Address(BaseModel):
    floor: int = Field(ge=0, le=2)


class Person(BaseModel):
    name: str
    urgent: bool


class Household(BaseModel):
    owner: Person
    refill: bool


class Note(RootModel[str]):
    pass


class Point(NamedTuple):
    x: Literal[0, 1]
    y: Literal[0, 1]


class Node(BaseModel):
    ok: bool
    below: Node | None = None


class Even(BaseModel):
    ok: bool
    odd: Odd


class Odd(BaseModel):
    even: list[Even]


class Tree(Enum):
    OAK = "oak"
    ELM = "elm"


@dataclass(frozen=True)
class Case:
    """A field that is refused.

    Attributes:
        annotation: the type of the field `bad`, which stands beside the question `good`.
        definitions: models of `$defs` that the pointer may name instead of the field.
    """

    id: str
    annotation: Any
    definitions: tuple[str, ...] = ()

    @property
    def model(self) -> type[BaseModel]:
        """A model with this field and one that is fine."""
        return create_model("Asked", good=(bool, ...), bad=(self.annotation, ...))

    @property
    def places(self) -> tuple[str, ...]:
        """What the pointers may name, or lead below."""
        return ("/rubric/properties/bad", *(f"/rubric/$defs/{name}" for name in self.definitions))


CASES = (
    Case("a free string", str),
    Case("an optional string", str | None),
    Case("a pattern", Annotated[str, StringConstraints(pattern="^[a-z]$")]),
    Case("constr", constr(max_length=3)),
    Case("a string or one of a few", Literal["a", "b"] | str),
    Case("an enum or a string", Tree | str, ("Tree",)),
    Case("an unbounded integer", int),
    Case("an optional unbounded integer", int | None),
    Case("an integer without a maximum", Annotated[int, Field(ge=1)]),
    Case("an integer without a minimum", Annotated[int, Field(lt=1)]),
    Case("too many levels", Annotated[int, Field(ge=0, le=100)]),
    Case("an unbounded number", float),
    Case("a number without a grid", Annotated[float, Field(ge=0, le=10)]),
    Case("a grid without an end", Annotated[float, Field(ge=0, multiple_of=0.5)]),
    Case("a decimal", Decimal),
    Case("a number or a string", int | str),
    Case("bytes", bytes),
    Case("a date", date),
    Case("a time", datetime),
    Case("a duration", timedelta),
    Case("a UUID", UUID),
    Case("an address", AnyUrl),
    Case("a path", Path),
    Case("a secret", SecretStr),
    Case("anything", Any),
    Case("an object of strings", dict[str, str]),
    Case("an object of booleans", dict[Literal["a", "b"], bool]),
    Case("any object", dict[str, Any]),
    Case("a list of strings", list[str]),
    Case("an optional list of strings", list[str] | None),
    Case("a set of integers", set[int]),
    Case("any list", list[Any]),
    Case("a list of lists", Sequence[list[Literal["a", "b"]]]),
    Case("a queue of dates", deque[date]),
    Case("a list of models", list[Contact], ("Contact",)),
    Case("a pair", tuple[bool, bool]),
    Case("a named pair", Point, ("Point",)),
    Case("one of two models", Contact | Address, ("Contact", "Address")),
    Case("one of two models, or null", Contact | Address | None, ("Contact", "Address")),
    Case("a model or a boolean", Contact | bool, ("Contact",)),
    Case("a string below", Person, ("Person",)),
    Case("a string below, optional", Person | None, ("Person",)),
    Case("a string two levels below", Household, ("Household", "Person")),
    Case("a string as root model", Note, ("Note",)),
    Case("a model that holds itself", Node, ("Node",)),
    Case("models that hold each other", Even, ("Even", "Odd")),
)


class ManyMistakes(BaseModel):
    name: str
    count: int
    good: bool
    tags: list[str] = Field(default_factory=list)
    when: datetime | None = None


async def refused_at(client: httpx.AsyncClient, model: type[BaseModel]) -> list[str]:
    """Where the rubric is wrong, each a place that is there."""
    rubric = model.model_json_schema()
    response = await client.post("/decide", json={"state": "Please call me.", "rubric": rubric})
    document = response.json()
    assert (response.status_code, document.get("type")) == (422, "urn:onestep:problem:rubric_rejected")
    assert response.headers["content-type"] == "application/problem+json"
    pointers = [problem["pointer"] for problem in document["errors"]]
    assert pointers
    for pointer in pointers:
        follow({"rubric": rubric}, pointer)
    return pointers


def is_below(pointer: str, places: Sequence[str]) -> bool:
    """Whether a pointer leads to one of these places, or below it."""
    return any(f"{pointer}/".startswith(f"{place}/") for place in places)


async def test_a_model_is_refused_by_its_field(
    client: httpx.AsyncClient, fake: FakeEngine, subtests: pytest.Subtests
) -> None:
    """Each pointer names the field or its definition, and the engine is not asked."""
    before = len(fake.requests)
    for case in CASES:
        with subtests.test(case.id):
            pointers = await refused_at(client, case.model)
            assert all(is_below(pointer, case.places) for pointer in pointers), pointers
    assert len(fake.requests) == before


async def test_a_rubric_that_holds_itself(client: httpx.AsyncClient) -> None:
    """Pydantic prints such a model as a reference at the root."""
    assert "properties" not in Node.model_json_schema()
    pointers = await refused_at(client, Node)
    assert all(is_below(pointer, ["/rubric"]) for pointer in pointers)


async def test_every_mistake_is_named(client: httpx.AsyncClient) -> None:
    """All at once, and the good field is not among them."""
    pointers = await refused_at(client, ManyMistakes)
    places = [f"/rubric/properties/{name}" for name in ("name", "count", "tags", "when")]
    assert all(is_below(pointer, places) for pointer in pointers)
    assert all(any(is_below(pointer, [place]) for pointer in pointers) for place in places)


def test_the_cases_are_told_apart() -> None:
    """No case hides another."""
    assert len({case.id for case in CASES}) == len(CASES)
