"""Schemas at their places, references, and the budgets of a reader."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.errors import RubricRejected
from app.canvas.json import escape
from app.canvas.site import (
    MAX_COMPLAINTS,
    MAX_POINTER_CHARS,
    MAX_PROBLEMS,
    ROOT,
    USUAL_KEYWORDS,
    Path,
    Reader,
)
from tests.app.canvas import rubrics
from tests.app.canvas.rubrics import LIMITS, YES_NO, Schema, complaints_of, opened


@dataclass(frozen=True)
class Followed:
    """A schema under `s`, which is opened, and what it is: keywords, the place of each, and schemas around it."""

    id: str
    schema: Schema
    root: Schema
    keywords: dict[str, Any]
    places: dict[str, str]
    depth: int


B: Schema = {"type": "boolean", "title": "of B", "x-note": 1}
FOLLOWED = (
    Followed("no reference", B, {}, B, {"type": "/s/type", "title": "/s/title"}, 0),
    Followed(
        "a reference",
        {"$ref": "#/$defs/B"},
        {"$defs": {"B": B}},
        B,
        {"type": "/$defs/B/type", "title": "/$defs/B/title"},
        1,
    ),
    Followed(
        "annotations beside it: the nearer ones hold",
        {"$ref": "#/$defs/B", "title": "mine", "description": "d", "deprecated": True},
        {"$defs": {"B": B}},
        {**B, "title": "mine", "description": "d", "deprecated": True},
        {"title": "/s/title", "description": "/s/description", "x-note": "/$defs/B/x-note", "type": "/$defs/B/type"},
        1,
    ),
    Followed(
        "a reference to a reference: the nearest hold",
        {"$ref": "#/$defs/A", "title": "mine"},
        {"$defs": {"A": {"$ref": "#/definitions/B", "title": "of A", "description": "of A"}}, "definitions": {"B": B}},
        {**B, "title": "mine", "description": "of A"},
        {"title": "/s/title", "description": "/$defs/A/description", "x-note": "/definitions/B/x-note"},
        2,
    ),
    Followed("an allOf of one", {"allOf": [B]}, {}, B, {"title": "/s/allOf/0/title"}, 1),
    Followed(
        "an allOf of one reference, as OpenAPI writes it",
        {"allOf": [{"$ref": "#/$defs/B", "description": "inner"}], "title": "mine", "description": "outer"},
        {"$defs": {"B": B}},
        {**B, "title": "mine", "description": "outer. inner"},
        {"title": "/s/title", "description": "/s/description", "type": "/$defs/B/type"},
        2,
    ),
    Followed("an allOf of two is no reference", {"allOf": [B, {}]}, {}, {"allOf": [B, {}]}, {"allOf": "/s/allOf"}, 0),
    Followed(
        "an allOf beside what constrains is no reference",
        {"allOf": [{"if": True}], "type": "object"},
        {},
        {"allOf": [{"if": True}], "type": "object"},
        {"type": "/s/type"},
        0,
    ),
    Followed(
        "a tilde and a slash", {"$ref": "#/$defs/a~1~0b"}, {"$defs": {"a/~b": B}}, B, {"type": "/$defs/a~1~0b/type"}, 1
    ),
    Followed("a tilde before a one", {"$ref": "#/$defs/~01"}, {"$defs": {"~1": B}}, B, {"type": "/$defs/~01/type"}, 1),
    Followed(
        "percent-encoded",
        {"$ref": "#/$defs/a%20b%25%C3%A4"},
        {"$defs": {"a b%ä": B}},
        B,
        {"type": "/$defs/a b%ä/type"},
        1,
    ),
    Followed(
        "a fragment is decoded before it is a pointer",
        {"$ref": "#/%24defs/a%2Fb%7E1"},
        {"$defs": {"a": {"b/": B}}},
        B,
        {"type": "/$defs/a/b~1/type"},
        1,
    ),
    Followed(
        "below a definition",
        {"$ref": "#/$defs/A/properties/b"},
        {"$defs": {"A": {"properties": {"b": B}}}},
        B,
        {"type": "/$defs/A/properties/b/type"},
        1,
    ),
    Followed(
        "in a list",
        {"$ref": "#/$defs/A/anyOf/1"},
        {"$defs": {"A": {"anyOf": [0, B]}}},
        B,
        {"type": "/$defs/A/anyOf/1/type"},
        1,
    ),
    Followed("nothing for a name", {"$ref": "#/$defs//"}, {"$defs": {"": {"": B}}}, B, {"type": "/$defs///type"}, 1),
    Followed(
        "a definition called as a keyword",
        {"$ref": "#/$defs/$id"},
        {"$defs": {"$id": B}},
        B,
        {"type": "/$defs/$id/type"},
        1,
    ),
)


@pytest.mark.parametrize("case", FOLLOWED, ids=lambda case: case.id)
def test_references_are_followed(case: Followed) -> None:
    """To the keywords that count, each with its own place."""
    reader = Reader({**case.root, "s": case.schema}, LIMITS)
    site = reader.open(case.schema, (*ROOT, "s"))
    assert reader.problems == ()
    assert site is not None
    assert (site.schema, site.depth) == (case.keywords, case.depth)
    places = {keyword: "".join(f"/{escape(str(key))}" for key in site.at(keyword)[1:]) for keyword in case.places}
    assert places == case.places
    assert site.at("minimum") == site.path


@dataclass(frozen=True)
class Refused:
    id: str
    schema: Any
    complaints: list[tuple[str, str]]


REFUSED = (
    Refused("null", None, [("/s", "not_a_schema")]),
    Refused("a list", [], [("/s", "not_a_schema")]),
    Refused("a text", "{}", [("/s", "not_a_schema")]),
    Refused("true, a schema elsewhere", True, [("/s", "not_a_schema")]),
    Refused("a reference to the whole", {"$ref": "#"}, [("/s/$ref", "unsupported_reference")]),
    Refused("a remote reference", {"$ref": "https://example.org/s.json"}, [("/s/$ref", "unsupported_reference")]),
    Refused("a remote fragment", {"$ref": "https://example.org/s#/$defs/B"}, [("/s/$ref", "unsupported_reference")]),
    Refused("a file", {"$ref": "file:///etc/passwd"}, [("/s/$ref", "unsupported_reference")]),
    Refused("a relative reference", {"$ref": "other.json#/$defs/B"}, [("/s/$ref", "unsupported_reference")]),
    Refused("an anchor", {"$ref": "#B"}, [("/s/$ref", "unsupported_reference")]),
    Refused("all definitions", {"$ref": "#/$defs"}, [("/s/$ref", "unsupported_reference")]),
    Refused("elsewhere", {"$ref": "#/properties/a"}, [("/s/$ref", "unsupported_reference")]),
    Refused("elsewhere, in a way", {"$ref": "#/$defsX/B"}, [("/s/$ref", "unsupported_reference")]),
    Refused("too long", {"$ref": "#/$defs/" + "a" * 1020}, [("/s/$ref", "unsupported_reference")]),
    Refused("a number", {"$ref": 1}, [("/s/$ref", "unsupported_reference")]),
    Refused("null for a reference", {"$ref": None}, [("/s/$ref", "unsupported_reference")]),
    Refused("a list for a reference", {"$ref": ["#/$defs/B"]}, [("/s/$ref", "unsupported_reference")]),
    Refused("nothing there", {"$ref": "#/$defs/Z"}, [("/s/$ref", "unknown_reference")]),
    Refused("nothing below", {"$ref": "#/$defs/B/title/x"}, [("/s/$ref", "unknown_reference")]),
    Refused("nothing in the list", {"$ref": "#/$defs/list/2"}, [("/s/$ref", "unknown_reference")]),
    Refused("no index", {"$ref": "#/$defs/list/-1"}, [("/s/$ref", "unknown_reference")]),
    Refused("no ASCII index", {"$ref": "#/$defs/list/\u0660"}, [("/s/$ref", "unknown_reference")]),
    Refused("no index of any length", {"$ref": "#/$defs/list/" + "1" * 1000}, [("/s/$ref", "unknown_reference")]),
    Refused(
        "not definitions of its own", {"$ref": "#/$defs/own", "$defs": {"own": B}}, [("/s/$ref", "unknown_reference")]
    ),
    Refused("no schema there", {"$ref": "#/$defs/list"}, [("/$defs/list", "not_a_schema")]),
    Refused("true there", {"$ref": "#/$defs/true"}, [("/$defs/true", "not_a_schema")]),
    Refused("itself", {"$ref": "#/$defs/self"}, [("/$defs/self/$ref", "cyclic_reference")]),
    Refused("itself, spelt another way", {"$ref": "#/$defs/spelt"}, [("/$defs/spelt/$ref", "cyclic_reference")]),
    Refused("a circle", {"$ref": "#/$defs/round"}, [("/$defs/about/allOf/0/$ref", "cyclic_reference")]),
    Refused(
        "what constrains beside a reference",
        {"$ref": "#/$defs/B", "enum": [True], "x": 1},
        [("/s/enum", "unsupported_keyword")],
    ),
    Refused("an id", {"$id": "https://example.org/s", **B}, [("/s/$id", "unsupported_keyword")]),
    Refused("an id that is none", {"$id": 1, **B}, [("/s/$id", "unsupported_keyword")]),
    Refused("an id beside a reference", {"$id": "s", "$ref": "#/$defs/B"}, [("/s/$id", "unsupported_keyword")]),
    Refused(
        "an id at the end of a reference", {"$ref": "#/$defs/named"}, [("/$defs/named/$id", "unsupported_keyword")]
    ),
    Refused(
        "an id on the way: references start there",
        {"$ref": "#/$defs/named/$defs/B"},
        [("/$defs/named/$id", "unsupported_keyword")],
    ),
)
DEFINITIONS: Schema = {
    "B": B,
    "list": [B],
    "true": True,
    "self": {"$ref": "#/$defs/self"},
    "spelt": {"$ref": "#/%24defs/s%70elt"},
    "round": {"$ref": "#/$defs/about"},
    "about": {"allOf": [{"$ref": "#/$defs/round"}]},
    "named": {"$id": "https://example.org/named", "type": "boolean", "$defs": {"B": B}},
}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_what_is_not_followed(case: Refused) -> None:
    """S7: nothing but definitions of the same rubric, and the complaint is where the mistake is."""
    reader = Reader({"$defs": DEFINITIONS, "s": case.schema}, LIMITS)
    reader.open(case.schema, (*ROOT, "s"))
    assert complaints_of(reader) == case.complaints


def test_only_the_root_may_have_an_id() -> None:
    """There it changes nothing."""
    site, reader = opened({"$id": "https://example.org/s", **B})
    assert (site.schema["type"], reader.problems) == ("boolean", ())


def test_what_a_schema_is_part_of_is_known_below() -> None:
    """A cycle through schemas that are opened one by one."""
    root: Schema = {"$defs": {"A": {"properties": {"b": {"$ref": "#/$defs/B"}}}, "B": {"items": {"$ref": "#/$defs/A"}}}}
    reader = Reader(root, LIMITS)
    outer = reader.open({"$ref": "#/$defs/A"}, ROOT)
    assert outer is not None
    inner = reader.open({"$ref": "#/$defs/B"}, (*outer.path, "properties", "b"), outer)
    assert inner is not None
    assert (inner.chain, reader.problems) == (("/$defs/A", "/$defs/B"), ())
    assert reader.open({"$ref": "#/$defs/A"}, (*inner.path, "items"), inner) is None
    assert complaints_of(reader) == [("/$defs/B/items/$ref", "cyclic_reference")]


def nested(levels: int, keyword: str) -> Schema:
    """A schema within so many others."""
    schema: Schema = {"type": "boolean"}
    for _ in range(levels):
        schema = {keyword: [schema]}
    return schema


@pytest.mark.parametrize("levels", [3, 4])
def test_depth_is_bounded(levels: int) -> None:
    """S7: however the schemas nest; what is refused stands at the first that is too deep."""
    limits = replace(LIMITS, max_depth=3)
    reader = Reader({}, limits)
    assert (reader.open(nested(levels, "allOf"), ROOT) is None) is (levels > 3)
    too_deep = [("/allOf/0/allOf/0/allOf/0/allOf/0", "too_deep")]
    assert complaints_of(reader) == too_deep[: levels - 3]
    site: Any = None
    reader = Reader({}, limits)
    for _ in range(levels + 1):
        site = reader.open(YES_NO, ROOT, site)
    assert complaints_of(reader) == [("", "too_deep")][: levels - 3]


def chained(references: int) -> Schema:
    """Definitions of which each refers to the next."""
    return {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(references)} | {str(references): YES_NO}


def test_references_count_as_depth() -> None:
    """Each one followed."""
    limits = replace(LIMITS, max_depth=3)
    for references, complaints in ((2, []), (3, [("/$defs/3", "too_deep")])):
        reader = Reader({"$defs": chained(references)}, limits)
        reader.open({"$ref": "#/$defs/0"}, ROOT)
        assert complaints_of(reader) == complaints


def test_nodes_are_bounded() -> None:
    """S11: every schema that is opened counts, and what is about to be looked at; then no more is."""
    reader = Reader({"$defs": {"A": YES_NO}}, replace(LIMITS, max_nodes=7))
    for _ in range(2):
        reader.open({"$ref": "#/$defs/A"}, ROOT)
    reader.visit(ROOT, 3)
    with pytest.raises(RubricRejected) as rejected:
        reader.open(YES_NO, (*ROOT, "last"))
    (problem,) = rejected.value.problems
    assert (problem.pointer, problem.code) == ("/rubric/last", "too_many_nodes")
    assert "7" in problem.message


def test_a_schema_of_many_keywords_counts_as_several() -> None:
    """It takes as long to look at."""
    reader = Reader({}, replace(LIMITS, max_nodes=4))
    reader.open(dict.fromkeys(map(str, range(USUAL_KEYWORDS * 3))), ROOT)
    with pytest.raises(RubricRejected):
        reader.visit(ROOT)


def test_texts_are_bounded_together() -> None:
    """A text that is shown twice counts twice."""
    reader = Reader({}, replace(LIMITS, max_chars=8))
    site = reader.open({"title": "four"}, ROOT)
    assert site is not None
    assert [reader.text(site, "title") for _ in range(2)] == ["four", "four"]
    with pytest.raises(RubricRejected) as rejected:
        reader.text(site, "title")
    assert [(one.pointer, one.code) for one in rejected.value.problems] == [("/rubric/title", "too_much_text")]


@dataclass(frozen=True)
class Text:
    id: str
    schema: Schema
    text: str
    complaints: list[tuple[str, str]]


TEXTS = (
    Text("none", {}, "", []),
    Text("empty", {"title": ""}, "", []),
    Text("on one line", {"title": " a\n b\u2028c "}, "a b c", []),
    Text("as long as may be", {"title": "t" * 400}, "t" * 400, []),
    Text("too long", {"title": "t" * 401}, "", [("/title", "text_too_long")]),
    Text("a number", {"title": 1}, "", [("/title", "bad_text")]),
    Text("null", {"title": None}, "", [("/title", "bad_text")]),
    Text("a list", {"title": ["a"]}, "", [("/title", "bad_text")]),
)


@pytest.mark.parametrize("case", TEXTS, ids=lambda case: case.id)
def test_a_text_is_on_one_line(case: Text) -> None:
    """So that it cannot look like another line of the prompt."""
    site, reader = opened(case.schema)
    assert (reader.text(site, "title"), complaints_of(reader)) == (case.text, case.complaints)


@dataclass(frozen=True)
class Descriptions:
    id: str
    near: Schema
    far: Schema
    description: Any


DESCRIPTIONS = (
    Descriptions(
        "both", {"description": "of this field."}, {"description": "of all these"}, "of this field. of all these"
    ),
    Descriptions("the same", {"description": "d"}, {"description": "d"}, "d"),
    Descriptions("the nearer", {"description": "near"}, {}, "near"),
    Descriptions("the farther", {}, {"description": "far"}, "far"),
    Descriptions("the nearer is none", {"description": 1}, {"description": "far"}, 1),
    Descriptions("the farther is none", {"description": "near"}, {"description": None}, "near"),
    Descriptions("the farther too long", {"description": "near"}, {"description": "f" * 401}, "f" * 401),
    Descriptions("the nearer too long", {"description": "n" * 401}, {"description": "far"}, "n" * 401),
)


@pytest.mark.parametrize("case", DESCRIPTIONS, ids=lambda case: case.id)
def test_both_descriptions_are_kept(case: Descriptions) -> None:
    """What a field says of itself and what its type says: the nearer first. What is too long is left to be refused."""
    root = {"$defs": {"far": {"$ref": "#/$defs/plain", **case.far}, "plain": YES_NO}}
    for schema in ({"$ref": "#/$defs/far", **case.near}, {"allOf": [{**YES_NO, **case.far}], **case.near}):
        site = Reader(root, LIMITS).open(schema, ROOT)
        assert site is not None
        assert site.schema["description"] == case.description


def test_what_json_schema_does_not_know_is_remarked_on() -> None:
    """It is ignored, and may be misspelt; what starts with x- is meant to be ignored, unless it looks like ours."""
    odd: Schema = {"titel": "t", "x-mine": 1, "x-option-description": {}, "maxSelect": 1, "title": "t", "$defs": {}}
    _, reader = opened({**YES_NO, **odd})
    assert [(one.pointer, one.code) for one in reader.remarks] == [
        (f"/rubric/{keyword}", "ignored_keyword") for keyword in ("maxSelect", "titel", "x-option-description")
    ]
    assert reader.problems == ()


def test_texts_that_are_not_shown_are_remarked_on() -> None:
    """Title and description, in their places."""
    site, reader = opened({"title": "t", "description": "d", "examples": []})
    reader.hide_texts(site)
    assert [one.pointer for one in reader.remarks] == ["/rubric/title", "/rubric/description"]
    assert {one.code for one in reader.remarks} == {"text_not_shown"}


def test_lists_of_schemas_are_opened_whole() -> None:
    """What is none is complained about and left out."""
    site, reader = opened({"anyOf": [{"title": "a"}, 1, {"title": "c"}]})
    sites = reader.open_all(site, "anyOf", 3)
    assert [(one.schema["title"], one.path[1:], one.depth) for one in sites] == [
        ("a", ("anyOf", 0), 1),
        ("c", ("anyOf", 2), 1),
    ]
    assert complaints_of(reader) == [("/anyOf/1", "not_a_schema")]


@pytest.mark.parametrize("value", [[], [{}, {}, {}], {}, None, "ab", {"0": {}}], ids=str)
def test_lists_of_schemas_are_bounded(value: Any) -> None:
    """S11: neither empty nor longer than asked for, and lists."""
    site, reader = opened({"anyOf": value})
    assert reader.open_all(site, "anyOf", 2) == []
    assert complaints_of(reader) == [("/anyOf", "bad_list")]


def test_a_keyword_that_is_not_known_is_refused() -> None:
    """If it constrains: in its place, which is not that of the schema."""
    site, reader = opened({"title": "t", "x": 1, "minimum": 0, "format": "date", "enum": []})
    reader.refuse(site, frozenset({"minimum"}))
    assert complaints_of(reader) == [("/enum", "unsupported_keyword")]
    assert site.has("x", "y")
    assert not site.has("y", "z")


def test_what_is_wrong_is_listed_once() -> None:
    """However often it is referred to; the complaints are counted all the same."""
    reader = Reader({}, LIMITS)
    for _ in range(3):
        reader.complain(ROOT, "bad", "must be good")
    reader.complain(ROOT, "bad", "must be better")
    assert complaints_of(reader) == [("", "bad"), ("", "bad")]
    assert reader.complaints == 4


def complain(reader: Reader, paths: Iterable[Path]) -> None:
    """Complain about each of these places."""
    for path in paths:
        reader.complain(path, "bad", "must be good")


def test_problems_are_bounded() -> None:
    """S11: a list as long as nobody reads ends by saying so."""
    reader = Reader({}, LIMITS)
    with pytest.raises(RubricRejected) as rejected:
        complain(reader, ((*ROOT, number) for number in range(MAX_PROBLEMS)))
    codes = [problem.code for problem in rejected.value.problems]
    assert codes == ["bad"] * (MAX_PROBLEMS - 1) + ["too_many_problems"]


def test_pointers_are_bounded_together() -> None:
    """S11: however deep the place of each; what is sent back stays small."""
    reader = Reader({}, LIMITS)
    deep: Path = (*ROOT, *["~" * 256] * 20)
    with pytest.raises(RubricRejected) as rejected:
        complain(reader, ((*deep, number) for number in range(MAX_PROBLEMS)))
    assert rejected.value.problems[-1].code == "too_many_problems"
    assert MAX_POINTER_CHARS < sum(len(problem.pointer) for problem in rejected.value.problems) < 2 * MAX_POINTER_CHARS


def test_complaints_are_bounded() -> None:
    """S11: the same mistake, referred to from everywhere, is not looked for without end."""
    reader = Reader({}, LIMITS)
    with pytest.raises(RubricRejected) as rejected:
        complain(reader, repeat(ROOT, 2 * MAX_COMPLAINTS))
    assert reader.complaints == MAX_COMPLAINTS
    assert [problem.code for problem in rejected.value.problems] == ["bad", "too_many_problems"]


def test_remarks_are_bounded() -> None:
    """S11: as problems are; nothing is refused for them."""
    reader = Reader({}, LIMITS)
    deep: Path = (*ROOT, *["~" * 256] * 20)
    for number in range(MAX_PROBLEMS * 2):
        reader.remark((*ROOT, number // 2), "odd", "is odd")
    assert [one.pointer for one in reader.remarks] == [f"/rubric/{number}" for number in range(MAX_PROBLEMS - 1)]
    assert reader.problems == ()
    reader = Reader({}, LIMITS)
    for number in range(MAX_PROBLEMS):
        reader.remark((*deep, number), "odd", "is odd")
    assert sum(len(one.pointer) for one in reader.remarks) < 2 * MAX_POINTER_CHARS


@given(st.text(max_size=8), rubrics.json_values())
def test_any_name_can_be_referred_to(name: str, other: Any) -> None:
    """Escaped as RFC 6901 says."""
    reader = Reader({"$defs": {"x": other, name: YES_NO}}, LIMITS)
    escaped = escape(name).replace("%", "%25")
    site = reader.open({"$ref": f"#/$defs/{escaped}"}, ROOT)
    assert site is not None
    assert (site.schema, site.path) == (YES_NO, (*ROOT, "$defs", name))
