"""From a caller's JSON Schema to a list of questions, or to everything that is wrong with it.

The language is closed: a keyword that would constrain a decision is understood or refused, never skipped. Annotations
(`examples`, `default`, `x-...`) are ignored. The schema is hostile input, so it is walked here, with our own limits,
before any library sees it; what the validator gets is rebuilt from what was understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.canvas.errors import Problem, RubricRejected
from app.canvas.json import Json, identity, one_line, pointer
from app.canvas.keyword import CONSTRAINING
from app.canvas.kinds import KINDS, QuestionKind
from app.canvas.question import Option, Question

ROOT_KEYWORDS = frozenset({"type", "properties", "required", "additionalProperties"})
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricLimits:
    """How large a rubric may be."""

    max_questions: int
    max_options: int
    max_text_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """A rubric that was understood.

    Attributes:
        questions: in the order of the schema's properties.
        schema: what was understood, as JSON Schema: equivalent to the caller's for validation, without annotations.
    """

    questions: tuple[Question, ...]
    schema: Mapping[str, Json]


@dataclass(slots=True)
class _Report:
    """Collects problems below one place of the rubric."""

    path: tuple[str | int, ...]
    problems: list[Problem] = field(default_factory=list)

    def __call__(self, path: tuple[str | int, ...], code: str, message: str) -> None:
        self.problems.append(Problem(pointer=pointer(*self.path, *path), code=code, message=message))

    def below(self, *path: str | int) -> _Report:
        return _Report((*self.path, *path), self.problems)


def compile_rubric(schema: Json, limits: RubricLimits) -> Rubric:
    """Understand a rubric.

    Raises:
        RubricRejected: with every problem found, pointers starting at `/rubric`.
    """
    report = _Report(("rubric",))
    rubric = _compile_root(schema, limits, report)
    if rubric is None or report.problems:
        raise RubricRejected(tuple(report.problems))
    return rubric


def _compile_root(schema: Json, limits: RubricLimits, report: _Report) -> Rubric | None:
    if not isinstance(schema, Mapping):
        report((), "not_a_schema", "must be a JSON Schema object")
        return None
    if schema.get("type") != "object":
        report(("type",) if "type" in schema else (), "not_an_object", 'must have "type": "object"')
    _refuse_keywords(schema, ROOT_KEYWORDS, report)
    _check_additional(schema.get("additionalProperties", True), report)
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not 1 <= len(properties) <= limits.max_questions:
        report(
            ("properties",) if "properties" in schema else (),
            "bad_properties",
            f'"properties" must hold 1 to {limits.max_questions} questions',
        )
        return None
    _check_required(schema.get("required", []), properties, report)
    compiled = [
        _compile_question(name, property_schema, limits, report.below("properties", name))
        for name, property_schema in properties.items()
    ]
    questions = tuple(question for question in compiled if question is not None)
    return Rubric(questions=questions, schema=_understood(schema, questions))


def _understood(schema: Mapping[str, Json], questions: tuple[Question, ...]) -> Mapping[str, Json]:
    """The schema again, of nothing but what was understood: whatever a property says, it admits exactly its options."""
    options = {question.name: {"enum": [option.value for option in question.options]} for question in questions}
    kept = {key: schema[key] for key in ("required", "additionalProperties") if key in schema}
    return {"type": "object", "properties": options, **kept}


def _compile_question(name: str, schema: Json, limits: RubricLimits, report: _Report) -> Question | None:
    if not isinstance(schema, Mapping):
        report((), "not_a_schema", "must be a JSON Schema object")
        return None
    if len(name) > limits.max_text_chars:
        report((), "name_too_long", f"a property name may have {limits.max_text_chars} characters")
    kind = next((kind for kind in KINDS if kind.claims(schema)), None)
    if kind is None:
        report(
            (),
            "unsupported_question",
            'must be {"type": "boolean"}, {"enum": [...]}, {"oneOf": [{"const": ...}, ...]} '
            'or {"type": "integer", "minimum": ..., "maximum": ...}',
        )
        return None
    return _question_of_kind(kind, name, schema, limits, report)


def _question_of_kind(
    kind: QuestionKind, name: str, schema: Mapping[str, Json], limits: RubricLimits, report: _Report
) -> Question:
    _refuse_keywords(schema, kind.keywords, report)
    text = ". ".join(filter(None, (_text(schema, key, report).rstrip(".") for key in ("title", "description"))))
    options = kind.options(schema, limits.max_options, report)
    _check_options(options, schema, limits, report)
    if len(text) > limits.max_text_chars:
        report((), "text_too_long", f"title and description may have {limits.max_text_chars} characters together")
    return Question(name=name, kind=kind.kind, text=text, options=options)


def _text(schema: Mapping[str, Json], keyword: str, report: _Report) -> str:
    text = schema.get(keyword, "")
    if isinstance(text, str):
        return one_line(text)
    report((keyword,), "bad_text", "must be a string")
    return ""


def _refuse_keywords(schema: Mapping[str, Json], known: frozenset[str], report: _Report) -> None:
    for keyword in schema:
        if keyword in CONSTRAINING and keyword not in known:
            report((keyword,), "unsupported_keyword", "this keyword is not in the rubric language here")


def _check_additional(value: Json, report: _Report) -> None:
    if not isinstance(value, bool):
        report(("additionalProperties",), "bad_additional_properties", "must be true or false")


def _check_required(required: Json, properties: Mapping[str, Json], report: _Report) -> None:
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        report(("required",), "bad_required", "must be an array of property names")
    elif not set(required) <= properties.keys():
        report(("required",), "bad_required", "names a property that the rubric does not ask")


def _check_options(
    options: tuple[Option, ...], schema: Mapping[str, Json], limits: RubricLimits, report: _Report
) -> None:
    for told_apart_by in (lambda option: identity(option.value), lambda option: option.key, lambda option: option.text):
        if len(set(map(told_apart_by, options))) < len(options):
            report((), "duplicate_option", "two options are the same value, or read the same")
            break
    if any(len(option.text) > limits.max_text_chars for option in options):
        report((), "text_too_long", f"an option's text may have {limits.max_text_chars} characters")
    if "type" in schema:
        _check_types(options, schema["type"], report)


def _check_types(options: tuple[Option, ...], declared: Json, report: _Report) -> None:
    names = declared if isinstance(declared, list) else [declared]
    if not names or not all(isinstance(name, str) and name in JSON_TYPES for name in names):
        report(("type",), "bad_type", "must be string, number, integer, boolean or null, or an array of these")
        return
    if not all(any(_is_type(option, str(name)) for name in names) for option in options):
        report((), "option_of_other_type", 'an option is not of the declared "type"')


def _is_type(option: Option, name: str) -> bool:
    value = option.value
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, JSON_TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
