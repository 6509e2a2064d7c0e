"""What becomes of a rubric, and strategies: any JSON value, rubrics that are accepted, rubrics that may not be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

from hypothesis import strategies as st

from app.canvas.errors import RubricRejected
from app.canvas.json import JsonScalar, escape, identity, to_text
from app.canvas.option import Option, make_option
from app.canvas.rubric import Rubric, compile_rubric
from app.canvas.site import ROOT, Reader, RubricLimits, Site
from tests.app.canary import CANARY
from tests.app.canvas.pools import QuestionLogprobs

LIMITS = RubricLimits(
    max_questions=64, max_options=16, max_text_chars=400, max_chars=65_536, max_depth=24, max_nodes=8192
)

KEYWORDS = (
    *("type", "properties", "required", "additionalProperties", "unevaluatedProperties", "enum", "oneOf", "anyOf"),
    *("allOf", "const", "minimum", "maximum", "exclusiveMinimum", "multipleOf", "items", "minItems", "maxItems"),
    *("uniqueItems", "contains", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "$ref", "$defs"),
    *("$id", "pattern", "title", "description", "examples", "default", "x-option-descriptions", "x-note"),
)

Schema = dict[str, Any]


# An option as value, key and text; a question as id, kind, text and options.
ShownOption = tuple[JsonScalar, str, str]
ShownQuestion = tuple[str, str, str, list[ShownOption]]

YES_NO: Schema = {"type": "boolean"}
SHOWN_YES_NO: list[ShownOption] = [(True, "true", "yes"), (False, "false", "no")]
SHOWN_NULL: ShownOption = (None, "null", "none of these")


def as_they_are(*values: str | int | float) -> list[ShownOption]:
    """Options that are shown as they are."""
    return [(value, str(value), str(value)) for value in values]


def rubric(properties: Schema | None = None, /, **keywords: Any) -> Schema:
    """A rubric of these properties, of one yes-or-no question called `a` unless told."""
    return {"type": "object", "properties": {"a": YES_NO} if properties is None else properties, **keywords}


def question(**keywords: Any) -> Schema:
    """A rubric of one property, called `a`."""
    return rubric({"a": keywords})


def shown(options: Sequence[Option]) -> list[ShownOption]:
    """Options as values, keys and texts."""
    return [(option.value, option.key, option.text) for option in options]


def questions_of(schema: Any, limits: RubricLimits = LIMITS) -> list[ShownQuestion]:
    """What an accepted rubric asks."""
    asked = compile_rubric(schema, limits).questions
    return [(one.id, one.kind.value, one.text, shown(one.options)) for one in asked]


def conditional_paths(schema: Any) -> list[tuple[str, ...]]:
    """What an accepted rubric holds only under a condition of its own."""
    return [field.path for field in compile_rubric(schema, LIMITS).fields if field.conditions]


def compile_or_reject(schema: Any, limits: RubricLimits = LIMITS) -> Rubric | RubricRejected:
    """What becomes of a rubric."""
    try:
        return compile_rubric(schema, limits)
    except RubricRejected as rejected:
        return rejected


def problems_of(schema: Any, limits: RubricLimits = LIMITS) -> list[tuple[str, str]]:
    """Pointer and code of everything wrong with a rubric; nothing if it is accepted."""
    result = compile_or_reject(schema, limits)
    return [] if isinstance(result, Rubric) else [(problem.pointer, problem.code) for problem in result.problems]


def opened(schema: Schema, limits: RubricLimits = LIMITS) -> tuple[Site, Reader]:
    """A schema as a whole rubric's root, and the reader that has opened it."""
    reader = Reader(schema, limits)
    site = reader.open(schema, ROOT)
    assert site is not None
    return site, reader


def complaints_of(reader: Reader) -> list[tuple[str, str]]:
    """Pointer, without the root's, and code of everything complained about."""
    return [(problem.pointer.removeprefix("/rubric"), problem.code) for problem in reader.problems]


def random_logprobs(compiled: Rubric, random: Random) -> QuestionLogprobs:
    """Logprobs that make any answer, near ties and certainty included."""

    def line(options: int) -> tuple[float, ...]:
        spread = random.choice([0.0, 0.1, 3.0, 30.0])
        return tuple(-random.uniform(0.0, spread) for _ in range(options))

    return tuple(
        tuple(line(len(question.slot_options)) for _ in range(question.lines)) for question in compiled.questions
    )


def texts() -> st.SearchStrategy[str]:
    """Short text of any characters but lone surrogates."""
    return st.text(max_size=12)


def scalars() -> st.SearchStrategy[JsonScalar]:
    """What may be an option."""
    numbers = st.floats(allow_nan=False, allow_infinity=False)
    return st.none() | st.booleans() | st.integers(-(2**70), 2**70) | numbers | texts()


def json_values(leaves: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """Any JSON value; keys are often keywords of JSON Schema."""
    keys = st.sampled_from(KEYWORDS) | texts()
    return st.recursive(
        scalars() if leaves is None else leaves,
        lambda below: st.lists(below, max_size=4) | st.dictionaries(keys, below, max_size=5),
        max_leaves=12,
    )


def canaries() -> st.SearchStrategy[str]:
    """Text that no message of ours can hold by accident."""
    return texts().map(lambda text: CANARY + text)


def option_values(most: int = 6) -> st.SearchStrategy[list[JsonScalar]]:
    """Options that differ as JSON values, in their text and in the prompt; null is none of them, and may be added."""
    value_of_null, key_of_null, text_of_null = SHOWN_NULL
    return st.lists(
        scalars().filter(
            lambda value: (
                value is not value_of_null and to_text(value) != key_of_null and make_option(value).text != text_of_null
            )
        ),
        min_size=2,
        max_size=most,
        unique_by=(identity, to_text, lambda value: make_option(value).text),
    )


@st.composite
def accepted_rubrics(draw: st.DrawFn) -> Schema:
    """A rubric of every feature of the language, inside `LIMITS`, whose decisions `jsonschema` checks exactly."""
    # Few draws, for each takes long: one for everything that is picked below.
    picks = draw(st.binary(min_size=MOST_PICKS, max_size=MOST_PICKS))
    names = draw(st.lists(texts(), max_size=3))
    return _Author(picks, draw(option_values()), draw(st.lists(texts(), min_size=1, max_size=3)), names).rubric()


def randoms() -> st.SearchStrategy[Random]:
    """Any generator."""
    return st.integers(0, 2**32 - 1).map(Random)


@st.composite
def damaged_rubrics(draw: st.DrawFn, leaves: st.SearchStrategy[Any] | None = None) -> Any:
    """An accepted rubric with any JSON put in, or something taken out, which may or may not be wrong."""
    rubric = deepcopy(draw(accepted_rubrics()))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(rubric))
        container, key = places[draw(st.integers(0, len(places) - 1))]
        match draw(st.sampled_from(["put", "take", "add"])):
            case "put":
                container[key] = draw(json_values(leaves))
            case "take" if len(places) > 1:
                del container[key]
            case _ if isinstance(container, dict):
                container[draw(st.sampled_from(KEYWORDS))] = draw(json_values(leaves))
    return rubric


def anything(leaves: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """JSON of any shape, most of it nearly a rubric."""
    return damaged_rubrics(leaves) | json_values(leaves)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Everything within a JSON value, as what holds it and the key there."""
    stack = [value]
    while stack:
        one = stack.pop()
        for key, below in list(one.items()) if isinstance(one, dict) else list(enumerate(one)):
            yield one, key
            if isinstance(below, dict | list):
                stack.append(below)


# Beyond these the first of every choice is taken.
MOST_PICKS = 400
# Names of properties and definitions: some that are keywords, some that need escaping.
ODD_NAMES = ("a", "", "a/b", "~", "~1", "100%", "two words", "Größe", "$ref", "properties", "if", "0", "\n", "A" * 40)
# Schemas within a schema: one, several, several by name.
SCHEMA = ("if", "then", "else", "not", "contains", "items")
SCHEMAS = ("allOf", "anyOf", "oneOf")
NAMED_SCHEMAS = ("properties", "dependentSchemas", "$defs", "definitions")


def with_other_names(schema: Any, rename: Callable[[str], str]) -> Any:
    """A rubric with every property called something else, wherever it is named."""
    if not isinstance(schema, dict):
        return schema
    renamed: Schema = {}
    for keyword, value in schema.items():
        if keyword in ("$defs", "definitions"):
            renamed[keyword] = {name: with_other_names(below, rename) for name, below in value.items()}
        elif keyword in NAMED_SCHEMAS:
            renamed[keyword] = {rename(name): with_other_names(below, rename) for name, below in value.items()}
        elif keyword == "required":
            renamed[keyword] = list(map(rename, value))
        elif keyword == "dependentRequired":
            renamed[keyword] = {rename(name): list(map(rename, names)) for name, names in value.items()}
        else:
            renamed[keyword] = _below(keyword, value, lambda below: with_other_names(below, rename))
    return renamed


def with_keywords_in_order(schema: Any, order: Callable[[list[str]], list[str]]) -> Any:
    """A rubric with the keywords of every schema in another order; properties keep theirs."""
    if not isinstance(schema, dict):
        return schema
    ordered: Schema = {}
    for keyword in order(list(schema)):
        value = schema[keyword]
        if keyword in NAMED_SCHEMAS:
            ordered[keyword] = {name: with_keywords_in_order(below, order) for name, below in value.items()}
        else:
            ordered[keyword] = _below(keyword, value, lambda below: with_keywords_in_order(below, order))
    return ordered


def _below(keyword: str, value: Any, change: Callable[[Any], Any]) -> Any:
    if keyword in SCHEMA:
        return change(value)
    return list(map(change, value)) if keyword in SCHEMAS else value


@dataclass(frozen=True)
class _Known:
    """Something that a condition may look at.

    Attributes:
        conditions: what may be said of it.
        properties: of an object.
    """

    conditions: Sequence[Any]
    properties: Sequence[tuple[str, _Known]] = ()


@dataclass
class _Scope:
    """An object being written.

    Attributes:
        declared: its properties in order, with the conditions that each is declared under.
        required: what it always holds.
    """

    depth: int
    may_declare: bool
    is_closed: bool
    has_null_type: bool
    declared: list[tuple[str, _Known]] = field(default_factory=list)
    under: dict[str, tuple[_Condition, ...]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)

    def may_require(self, conditions: tuple[_Condition, ...]) -> list[str]:
        """What a part that holds under these conditions may require."""
        return [name for index, (name, _) in enumerate(self.declared) if self._may(index, name, conditions)]

    def _may(self, index: int, name: str, conditions: tuple[_Condition, ...]) -> bool:
        under = self.under[name]
        if conditions[: len(under)] == under and (name in self.required or under == conditions):
            return True
        is_later = all(condition.reach <= index for condition in conditions)
        return bool(conditions) and is_later and not (under and self.is_closed)


@dataclass(frozen=True, eq=False)
class _Condition:
    """A condition that looks at the first `reach` properties of its object."""

    reach: int


class _Author:
    """Writes one rubric."""

    def __init__(self, picks: bytes, values: list[JsonScalar], said: list[str], names: list[str]) -> None:
        """What is picked, and the values, texts and names to pick from."""
        self._picks = iter(picks)
        self._values = values
        self._said = said
        self._names = list(dict.fromkeys((*names, *ODD_NAMES)))
        self._definitions: Schema = {}
        self._parts_left = 6
        self._root = self._pick("$defs", "definitions")

    def rubric(self) -> Schema:
        """The rubric."""
        schema, _ = self._object(2)
        schema = self._wrapped(schema)
        return {**schema, self._root: self._definitions} if self._definitions else schema

    # What is picked

    def _count(self, most: int) -> int:
        return next(self._picks, 0) % (most + 1)

    def _pick(self, *choices: Any) -> Any:
        return choices[self._count(len(choices) - 1)]

    def _some(self, values: Sequence[Any]) -> list[Any]:
        return [value for value in values if self._pick(True, False)]

    def _options(self, most: int) -> list[JsonScalar]:
        """At least two of the values."""
        first = self._count(len(self._values) - 2)
        return self._values[first : first + 2 + self._count(most - 2)]

    def _free_names(self, scope: _Scope, most: int, least: int = 0) -> list[str]:
        taken = {name for name, _ in scope.declared}
        free = [name for name in self._names if name not in taken]
        count = min(len(free), least + self._count(most - least))
        return [free.pop(self._count(len(free) - 1)) for _ in range(count)]

    def _annotations(self) -> Schema:
        title, description = self._pick(*self._said), self._pick(*self._said)
        hints = {"default": self._pick(*self._values, None), "examples": self._some(self._values[:2])}
        odd = {"x-note": {"pattern": [{"$ref": "#"}]}, "description": description}
        notes: Schema = self._pick({}, {}, {"title": title}, {"title": title, **odd, **hints})
        return notes

    def _wrapped(self, schema: Any) -> Any:
        """The same schema, maybe behind a reference or an `allOf` of one, maybe with annotations beside that."""
        if isinstance(schema, bool):
            return schema
        match self._pick("plain", "plain", "plain", "reference", "all of one", "both"):
            case "plain":
                return schema
            case "all of one":
                return {"allOf": [schema], **self._annotations()}
            case how:
                name = f"{len(self._definitions)}: {self._pick(*self._names)}"
                self._definitions[name] = schema
                reference = {"$ref": f"#/{self._root}/{quote(escape(name))}"}
                return {**reference, **self._annotations()} if how == "reference" else {"allOf": [reference]}

    # Questions

    def _property(self, depth: int) -> tuple[Any, _Known]:
        kinds = [self._boolean, self._choice, self._listed, self._levels, self._probability, self._selection]
        kind = self._pick(*kinds, self._constant, *([lambda: self._object(depth - 1)] * 3 if depth else []))
        schema, known = kind()
        known = _Known((*known.conditions, True, {"type": ["null", "object"]}), known.properties)
        return self._wrapped({**schema, **self._annotations()}), known

    def _nullable(self, schema: Schema) -> Schema:
        how = self._pick("no", "no", "anyOf", "oneOf", "type")
        if how == "type" and "type" in schema:
            return {**schema, "type": [schema["type"], "null"]}
        lists = {"anyOf": [self._wrapped(schema), {"type": "null"}], "oneOf": [{"type": "null"}, schema]}
        return {how: lists[how]} if how in lists else schema

    def _boolean(self) -> tuple[Schema, _Known]:
        return self._nullable({"type": "boolean"}), _Known([{"const": True}, {"enum": [False, None]}])

    def _choice(self) -> tuple[Schema, _Known]:
        values = self._options(6)
        schema: Schema = {"enum": values}
        if self._pick(True, False):
            schema["x-option-descriptions"] = {to_text(value): "what it means" for value in self._some(values)}
        return self._nullable(schema), _Known([{"const": values[0]}, {"enum": values[1:]}, {"type": "string"}])

    def _listed(self) -> tuple[Schema, _Known]:
        values = self._options(6)
        titles = [{}, {"description": "D"}]
        consts = [{"const": value, **self._pick(*titles)} for value in values]
        lists = [consts, [consts[0], {"enum": values[1:]}], [{self._pick("anyOf", "oneOf"): consts}]]
        schema = {self._pick("anyOf", "oneOf"): self._pick(*lists)}
        return self._nullable(schema), _Known([{"not": {"const": values[0]}}, {"enum": values[:1]}])

    def _levels(self) -> tuple[Schema, _Known]:
        # Steps that are powers of two: `jsonschema` divides floats.
        name, step = self._pick(("integer", 1), ("integer", 3), ("number", 1), ("number", 0.25), ("number", 2.0))
        first, levels = self._pick(0, 1, -4, 7, 2**40, -(2**40)), 2 + self._count(8)
        low, high = first * step, (first + levels - 1) * step
        lower = self._pick({"minimum": low}, {"exclusiveMinimum": low - step})
        upper = self._pick({"maximum": high}, {"exclusiveMaximum": high + step})
        grid = {} if name == "integer" and step == 1 and self._pick(True, False) else {"multipleOf": step}
        schema = {"type": name, **lower, **upper, **grid}
        conditions = [{"minimum": low + step}, {"exclusiveMaximum": high}, {"const": low}, {"type": "integer"}]
        return self._nullable(schema), _Known(conditions)

    def _probability(self) -> tuple[Schema, _Known]:
        schema = self._nullable({"type": "number", "minimum": 0, "maximum": 1})
        return schema, _Known([{"minimum": 0.5}, {"exclusiveMaximum": 0.5}, {"type": "number"}])

    def _selection(self) -> tuple[Schema, _Known]:
        values = self._options(4)
        schema: Schema = {"type": "array", "items": self._wrapped({"enum": values})}
        if self._pick(True, False):
            schema["uniqueItems"] = self._pick(True, False)
        least = self._count(len(values))
        schema |= self._pick({}, {"minItems": least}, {"maxItems": least}, {"minItems": least, "maxItems": 99})
        counted = {"contains": {"enum": values[1:]}, "minContains": 2, "maxContains": 3}
        conditions = [{"contains": {"const": values[0]}}, {"minItems": 2}, {"maxItems": 1, "type": "array"}, counted]
        return self._nullable(schema), _Known(conditions)

    def _constant(self) -> tuple[Schema, _Known]:
        value = self._pick(*self._values, None)
        null = [{"type": "null"}, {"type": ["null"]}] if value is None else []
        return self._pick({"const": value}, {"enum": [value]}, *null), _Known([{"const": value}])

    # Objects

    def _object(self, depth: int) -> tuple[Schema, _Known]:
        closing = self._pick(
            {}, {}, {"additionalProperties": True}, {"additionalProperties": False}, {"unevaluatedProperties": False}
        )
        may_declare = closing.get("additionalProperties", True)
        # The whole rubric may not be null.
        null = "no" if depth == 2 else self._pick("no", "no", "type", "anyOf")
        is_closed = "unevaluatedProperties" in closing
        scope = _Scope(depth=depth, may_declare=may_declare, is_closed=is_closed, has_null_type=null == "type")
        schema: Schema = {"type": ["null", "object"] if null == "type" else "object", **closing, "properties": {}}
        for name in self._free_names(scope, 4, least=2):
            # The first of a rubric is a question, so that there is one.
            is_first = depth == 2 and not scope.declared
            value, known = self._boolean() if is_first else self._property(depth)
            self._declare(scope, schema, name, value, known, ())
        schema["required"] = self._some(list(schema["properties"]))
        scope.required.update(schema["required"])
        schema |= self._conditional(scope, ())
        known = _Known([{"type": "object"}], tuple(scope.declared))
        return {"anyOf": [self._wrapped(schema), {"type": "null"}]} if null == "anyOf" else schema, known

    def _declare(
        self, scope: _Scope, part: Schema, name: str, value: Any, known: _Known, under: tuple[_Condition, ...]
    ) -> None:
        part.setdefault("properties", {})[name] = value
        scope.declared.append((name, known))
        scope.under[name] = under

    def _part(self, scope: _Scope, conditions: tuple[_Condition, ...]) -> Schema:
        self._parts_left -= 1
        # Where null is among the types of the object, a part must not refuse it.
        part: Schema = {} if scope.has_null_type else self._pick({}, {"type": "object"}) | {}
        for name in self._free_names(scope, 2) if scope.may_declare else []:
            self._declare(scope, part, name, *self._property(scope.depth), conditions)
        part["required"] = self._some(scope.may_require(conditions))
        if not conditions:
            scope.required.update(part["required"])
        part |= self._conditional(scope, conditions)
        wrapped: Schema = self._wrapped(part)
        return wrapped

    def _conditional(self, scope: _Scope, conditions: tuple[_Condition, ...]) -> Schema:
        """Keywords for a part, in the order in which what they declare is asked."""
        said: Schema = {}
        if self._has_more(0):
            said["allOf"] = [self._part(scope, conditions) for _ in range(2)]
        if self._has_more(4):
            condition, said["if"] = self._condition(scope)
            for keyword in self._some(["then", "else"]):
                # A condition and its opposite are two.
                said[keyword] = self._part(scope, (*conditions, _Condition(condition.reach)))
        if scope.declared and self._has_more(0):
            trigger = self._count(len(scope.declared) - 1)
            dependent = (*conditions, _Condition(trigger + 1))
            said["dependentSchemas"] = {scope.declared[trigger][0]: self._part(scope, dependent)}
        if scope.declared and self._has_more(0):
            trigger = self._count(len(scope.declared) - 1)
            names = scope.may_require((*conditions, _Condition(trigger + 1)))
            said["dependentRequired"] = {scope.declared[trigger][0]: self._some(names)}
        return said

    def _has_more(self, likely: int) -> bool:
        """Whether to write another part: few, so that examples stay readable."""
        has_more: bool = self._parts_left > 0 and self._pick(False, False, True, *[True] * likely)
        return has_more

    def _condition(self, scope: _Scope) -> tuple[_Condition, Any]:
        reach = self._count(len(scope.declared))
        return _Condition(reach), self._wrapped(self._said_of(scope.declared[:reach], 2))

    def _said_of(self, properties: Sequence[tuple[str, _Known]], level: int) -> Any:
        """A condition on an object, which looks at these properties only."""
        if not properties:
            return self._pick(True, False, {}, {"type": "object"})
        name, known = self._pick(*properties)
        inner = self._said_of(known.properties, 1) if known.properties else self._pick(*known.conditions)
        said: Any = {"properties": {name: self._wrapped(inner)}}
        match self._pick("value", "value", "present", "both", "not", "lists") if level else "value":
            case "present":
                said = {"required": [name]}
            case "both":
                said["required"] = [name]
            case "not":
                said = {"not": said}
            case "lists":
                said = {self._pick("allOf", "anyOf", "oneOf"): [said, self._said_of(properties, level - 1)]}
        return said
