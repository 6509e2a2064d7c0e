"""From a caller's JSON Schema to questions, or to everything that is wrong with it.

The language is closed: a keyword that would constrain a decision is understood or refused, never skipped. The schema is
hostile input, so it is walked here, with our own limits and without recursion, before any library sees it; what the
validator gets is rebuilt from what was understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from app.canvas.errors import Problem, RubricRejected
from app.canvas.field import Field
from app.canvas.json import Json
from app.canvas.object import ObjectCompiler
from app.canvas.question import Question
from app.canvas.site import ROOT, Reader, RubricLimits


@dataclass(frozen=True, kw_only=True)
class Rubric:
    """A rubric that was understood.

    Attributes:
        description: what it says of itself, ahead of its questions.
        fields: of the decision, every object ahead of what it holds.
        nodes: schemas and options in it: how long it takes to do anything with it.
        remarks: what is allowed in it and probably not meant.
        schema: what was understood, as JSON Schema: no decision satisfies it that does not satisfy the caller's.
    """

    description: str
    fields: tuple[Field, ...]
    remarks: tuple[Problem, ...] = ()
    nodes: int = 0
    schema: Mapping[str, Json] = field(repr=False)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """In the order of the schema's properties."""
        return tuple(one.content for one in self.fields if isinstance(one.content, Question))


def compile_rubric(schema: Json, limits: RubricLimits) -> Rubric:
    """Understand a rubric.

    Raises:
        RubricRejected: with every problem found, pointers starting at `/rubric`.
    """
    reader = Reader(schema, limits)
    rubric = _compile(schema, reader)
    if rubric is None or reader.problems:
        raise RubricRejected(reader.problems)
    return rubric


def _compile(schema: Json, reader: Reader) -> Rubric | None:
    root = reader.open(schema, ROOT)
    if root is None:
        return None
    if root.schema.get("type") != "object":
        reader.complain(root.at("type"), "not_an_object", 'must have "type": "object"')
        return None
    fields, understood = ObjectCompiler(reader).compile(root)
    description = reader.text(root, "description")
    reader.remark_on_unused_demands()
    rubric = Rubric(
        description=description, fields=fields, remarks=reader.remarks, nodes=reader.nodes, schema=understood
    )
    most = reader.limits.max_questions
    if len(rubric.questions) > most or not (rubric.questions or reader.problems):
        reader.complain(
            ROOT,
            "bad_question_count",
            f"asks {len(rubric.questions)} questions, and may ask 1 to {most}; what has one value is not asked",
        )
    return rubric
