"""Requests whose answers are known."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import jsonschema
import pytest

from app.canvas.plan import Planner
from bench.demo.labelled import Labelled, foreign, from_file, held_out
from engine.demo.family import Family, Split, load_families

BY_HAND = Path(__file__).parents[2] / "demo" / "natural_messages.json"


@pytest.fixture(scope="module")
def families() -> tuple[Family, ...]:
    """All of them."""
    return load_families()


def test_every_family_is_asked_about(families: tuple[Family, ...]) -> None:
    """At least so many questions, in all layouts and orders, the same ones every time."""
    requests = list(held_out(families, Split.HELD_OUT, 300))
    assert sum(len(request.expected) for request in requests) >= 300
    assert {family for request in requests for family in request.families.values()} == {one.key for one in families}
    assert len({tuple(request.body["policy"].values()) for request in requests}) == 6
    assert requests == list(held_out(families, Split.HELD_OUT, 300))


def test_answers_satisfy_their_rubrics(families: tuple[Family, ...], planner: Planner) -> None:
    """Of all sources, also when options are permuted, which changes neither questions nor what is right."""
    random = Random(1)
    known = [*held_out(families, Split.HELD_OUT, 200), *from_file(BY_HAND)]
    for request in (*known, *(one.permuted(random) for one in known)):
        planner.plan(request.body["rubric"])
        jsonschema.validate(dict(request.expected), {**request.body["rubric"], "required": []})
        assert set(request.expected) <= set(request.body["rubric"]["properties"])


def test_permuting_moves_options(families: tuple[Family, ...]) -> None:
    """And nothing else."""
    random = Random(1)
    known = [one for one in held_out(families, Split.HELD_OUT, 300) if "enum" in json.dumps(one.body)]
    permuted = [one.permuted(random) for one in known]
    assert sum(one.body != other.body for one, other in zip(known, permuted, strict=True)) > len(known) / 2
    assert [_sorted_options(one) for one in known] == [_sorted_options(one) for one in permuted]


def test_foreign_messages(families: tuple[Family, ...], planner: Planner) -> None:
    """Half of their questions have an option that says so, which is what is expected of them."""
    requests = list(foreign(families, 40))
    for request in requests:
        (schema,) = request.body["rubric"]["properties"].values()
        (expected,) = request.expected.values()
        planner.plan(request.body["rubric"])
        assert expected is None or expected in schema["enum"]
    assert sum(request.expected["q0"] is None for request in requests) == 20


def _sorted_options(request: Labelled) -> str:
    body = json.loads(json.dumps(request.body))
    for schema in body["rubric"]["properties"].values():
        for holder in (schema, schema.get("items", {})):
            for key in {"enum", "oneOf"} & set(holder):
                holder[key].sort(key=json.dumps)
    return json.dumps(body)


def test_reading_once_keeps_the_rest(families: tuple[Family, ...]) -> None:
    """Layout and order stay."""
    for request in held_out(families, Split.HELD_OUT, 20):
        once = request.read_once()
        assert once.body["policy"] == {**request.body["policy"], "max_reads": 1}
        assert (once.expected, once.body["rubric"]) == (request.expected, request.body["rubric"])
