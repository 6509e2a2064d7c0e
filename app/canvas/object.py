"""Objects of a rubric: their properties, and the conditions on them.

An object says what it holds in parts: itself, the elements of its `allOf`, and what holds under a condition (`then`,
`else`, `dependentSchemas`). Each part may declare properties and require some. A property that a conditional part
declares is asked under that condition; so is one that it requires and that nothing requires always.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.canvas.condition import Condition, ConditionParser, Names, is_present
from app.canvas.field import Field, Group
from app.canvas.field_list import Conditions, FieldList
from app.canvas.json import Json, sentences
from app.canvas.kinds.boolean import Presence
from app.canvas.nullable import with_plain_type, without_null
from app.canvas.option import NO, YES
from app.canvas.property import (
    is_constant,
    parse_constant,
    parse_question,
    text_of,
    with_demands,
    within,
)
from app.canvas.site import Path, Reader, Site

CLOSING = ("additionalProperties", "unevaluatedProperties")
PART_KEYWORDS = frozenset(
    {"type", "properties", "required", "allOf", "if", "then", "else", "dependentRequired", "dependentSchemas"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Object:
    """An object being understood.

    Attributes:
        text: what stands ahead of its questions.
        admits: the properties it may hold, where it says so.
        has_null_type: whether null is among its types: then its parts may not refuse null.
    """

    names: Names
    path: Path
    text: str
    admits: frozenset[str] | None
    has_null_type: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A part of an object, still to be understood; what was understood goes into `into`."""

    site: Site
    around: _Object
    conditions: Conditions
    into: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Property:
    """A property of a part, still to be understood; what was understood goes into `into`."""

    part: _Part
    name: str
    value: Json
    into: dict[str, Any]

    @property
    def names(self) -> Names:
        return (*self.part.around.names, self.name)

    @property
    def place(self) -> Path:
        return (*self.part.site.at("properties"), self.name)


class ObjectCompiler:
    """Understands the objects of one rubric. For one use."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._fields = FieldList(reader)
        self._conditions = ConditionParser(reader)

    def compile(self, root: Site) -> tuple[tuple[Field, ...], Mapping[str, Json]]:
        """The fields of an object, and the schema of what was understood. Complains about everything wrong."""
        understood: dict[str, Any] = {}
        stack: list[_Part | _Property] = [self._whole(root, (), "", understood, has_null_type=False)]
        while stack:
            work = stack.pop()
            below = self._part(work) if isinstance(work, _Part) else self._property(work)
            stack.extend(reversed(list(below)))
        return self._fields.finish(), understood

    def _whole(self, site: Site, names: Names, text: str, into: dict[str, Any], *, has_null_type: bool) -> _Part:
        """The part of an object that is the object itself."""
        properties = site.schema.get("properties")
        if properties is None and not site.has("allOf", "if", "dependentSchemas"):
            self._reader.complain(site.path, "bad_properties", 'an object must list its "properties"')
        into["type"] = "object"
        # What is evaluated and what is not takes the validator exponential time to find out. It need not: a decision
        # holds what is declared where its conditions hold, and nothing else.
        if site.has("additionalProperties"):
            into["additionalProperties"] = site.schema["additionalProperties"]
        for keyword in filter(site.has, CLOSING):
            if not isinstance(site.schema[keyword], bool):
                self._reader.complain(site.at(keyword), "bad_additional_properties", "must be true or false")
        if site.schema.get("unevaluatedProperties") is False:
            self._fields.close(names)
        own = frozenset(properties) if isinstance(properties, Mapping) else frozenset()
        is_closed = site.schema.get("additionalProperties") is False
        admits = own if is_closed else None
        around = _Object(names=names, path=site.path, text=text, admits=admits, has_null_type=has_null_type)
        open_schema = {key: value for key, value in site.schema.items() if key not in CLOSING and key != "type"}
        return _Part(site=replace(site, schema=open_schema), around=around, conditions=(), into=into)

    def _part(self, part: _Part) -> Iterator[_Part | _Property]:
        self._reader.refuse(part.site, PART_KEYWORDS)
        if part.site.path != part.around.path:
            self._reader.hide_texts(part.site)
        if part.site.schema.get("type", "object") != "object":
            self._reader.complain(part.site.at("type"), "not_an_object", 'may only be "object" here')
        elif part.site.has("type") and part.around.has_null_type:
            self._reader.complain(part.site.at("type"), "refuses_null", "refuses null, which the whole object may be")
        if part.site.has("required"):
            part.into["required"] = part.site.schema["required"]
            self._require(part.site.schema["required"], part, part.site.at("required"), part.conditions)
        self._dependent_required(part)
        yield from self._properties(part)
        yield from self._all_of(part)
        yield from self._if(part)
        yield from self._dependent_schemas(part)

    def _properties(self, part: _Part) -> Iterator[_Property]:
        into = part.into["properties"] = {}
        for name, value in self._named(part.site, "properties"):
            yield _Property(part=part, name=name, value=value, into=into)

    def _all_of(self, part: _Part) -> Iterator[_Part]:
        if part.site.has("allOf"):
            for site in self._reader.open_all(part.site, "allOf", self._reader.limits.max_nodes):
                yield replace(part, site=site, into=_append(part.into))

    def _if(self, part: _Part) -> Iterator[_Part]:
        site = part.site
        if not site.has("if"):
            for keyword in filter(site.has, ("then", "else")):
                self._reader.complain(site.at(keyword), "no_condition", 'has no "if" beside it')
            return
        condition = self._conditions.parse(site.schema["if"], site.at("if"), site)
        understood = _append(part.into)
        understood["if"] = condition.schema
        for keyword, is_wanted in (("then", True), ("else", False)):
            if site.has(keyword):
                under = condition.condition(site.at("if"), is_wanted=is_wanted)
                place = site.at(keyword)
                yield from self._under(under, part, site.schema[keyword], place, _nest(understood, keyword))

    def _dependent_schemas(self, part: _Part) -> Iterator[_Part]:
        for name, value in self._named(part.site, "dependentSchemas"):
            place = (*part.site.at("dependentSchemas"), name)
            into = _nest(_nest(part.into, "dependentSchemas"), name)
            yield from self._under(is_present(name).condition(place), part, value, place, into)

    def _dependent_required(self, part: _Part) -> None:
        for name, required in self._named(part.site, "dependentRequired"):
            place = (*part.site.at("dependentRequired"), name)
            _nest(part.into, "dependentRequired")[name] = required
            self._require(required, part, place, (*part.conditions, is_present(name).condition(place)))

    def _under(
        self, condition: Condition, part: _Part, value: Json, place: Path, into: dict[str, Any]
    ) -> Iterator[_Part]:
        """A part that holds under one more condition."""
        site = self._reader.open(value, place, part.site)
        if site is not None:
            yield replace(part, site=site, conditions=(*part.conditions, condition), into=into)

    def _require(self, required: Json, part: _Part, place: Path, conditions: Conditions) -> None:
        if not isinstance(required, list):
            self._reader.complain(place, "bad_required", "must be an array of property names")
            return
        self._reader.visit(place, len(required))
        for index, name in enumerate(required):
            if isinstance(name, str):
                self._fields.require((*part.around.names, name), (*place, index), conditions)
            else:
                self._reader.complain((*place, index), "bad_required", "must be a property name")

    def _named(self, site: Site, keyword: str) -> Iterator[tuple[str, Json]]:
        content = site.schema.get(keyword, {})
        if not isinstance(content, Mapping):
            self._reader.complain(site.at(keyword), "bad_properties", "must be an object, by property name")
            return
        self._reader.visit(site.at(keyword), len(content))
        yield from content.items()

    def _property(self, work: _Property) -> Iterator[_Part]:
        self._check_name(work)
        opened = self._reader.open(work.value, work.place, work.part.site)
        if opened is None:
            self._declare(work, Group())  # so that nobody complains that it is not there
            return
        if self._fields.has(work.names):
            self._declare(work, Group())  # which complains; what it says is not looked at
            return
        site = with_plain_type(opened)
        core = without_null(site, self._reader)
        if core.schema.get("type") == "object":
            yield self._object(work, site, core)
        elif is_constant(site):
            constant = parse_constant(site, self._reader)
            self._declare(work, constant)
            work.into[work.name] = {"const": constant.value}
        else:
            question = parse_question(site, core, self._reader, work.names, work.part.around.text)
            self._declare(work, question)
            work.into[work.name] = question.schema

    def _object(self, work: _Property, site: Site, core: Site) -> _Part:
        own = text_of(core, self._reader)
        text = within(work.part.around.text, own)
        into: dict[str, Any] = {}
        if core is site:
            self._declare(work, Group())
            work.into[work.name] = into
        else:
            self._reader.count_chars(work.place, work.part.around.text)
            asked = sentences(within(work.part.around.text, own), Presence.default_text)
            question = Presence(path=work.names, text=asked, options=(YES, NO), own_text=own)
            self._declare(work, with_demands(question, core, self._reader))
            work.into[work.name] = {"anyOf": [into, {"type": "null"}]}
        return self._whole(core, work.names, text, into, has_null_type=isinstance(site.schema.get("type"), list))

    def _declare(self, work: _Property, content: Any) -> None:
        self._fields.declare(work.names, content, work.place, work.part.conditions)

    def _check_name(self, work: _Property) -> None:
        if len(work.name) > self._reader.limits.max_text_chars:
            most = self._reader.limits.max_text_chars
            self._reader.complain(work.place, "name_too_long", f"a property name may have {most} characters")
        self._reader.count_chars(work.place, work.name)
        admitted = work.part.around.admits
        if admitted is not None and work.name not in admitted:
            message = 'the object admits no such property: say "unevaluatedProperties": false instead'
            self._reader.complain(work.place, "closed_object", message)


def _append(into: dict[str, Any]) -> dict[str, Any]:
    """A new schema at the end of an `allOf`."""
    new: dict[str, Any] = {}
    into.setdefault("allOf", []).append(new)
    return new


def _nest(into: dict[str, Any], key: str) -> dict[str, Any]:
    """The schema under a key, a new one if there is none."""
    nested: dict[str, Any] = into.setdefault(key, {})
    return nested
