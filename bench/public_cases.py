"""The public data set: the 240 cases of `jevbench` (PyPI, Apache-2.0), said in our rubric language.

A case is a text, the state, with 8 to 12 questions about it; 2,240 questions in all, of three types:

    noul    1,341   yes or no                     {"type": "boolean"}
    choice    615   4 keys, each described        {"oneOf": [{"const": key, "description": ...}, ...]}
    score     284   4 or 5 levels, each described {"type": "integer", "minimum": 0, "maximum": levels - 1}

Every case compiles and none is left out. What is not said word for word: an integer of our language has no text per
level, so the texts of a score's levels stand in the question's description, "0: ...; 1: ..."; and the data set's
question keys, which it counts as part of a question, are the names of properties, which the model never sees here.
An unknown type of question stops the bench.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from app.canvas.json import Json

SUITE, CASES_FILE = "jevbench-240", "cases.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicCase:
    """One case.

    Attributes:
        state: the text that the questions are about.
        rubric: its questions, as JSON Schema.
    """

    id: str
    state: str
    rubric: Mapping[str, Json]


def load_public_cases() -> tuple[PublicCase, ...]:
    """All cases, in the data set's order. Read as data: the package's own code is untyped, and not needed."""
    text = files("jevbench.suites").joinpath(SUITE, CASES_FILE).read_text(encoding="utf-8")
    return tuple(parse_cases(text))


def parse_cases(lines: str) -> Iterator[PublicCase]:
    """Cases from JSON lines."""
    for line in filter(str.strip, lines.splitlines()):
        case = json.loads(line)
        yield PublicCase(id=case["id"], state=case["state"], rubric=rubric_of(case["questions"]))


def rubric_of(questions: Mapping[str, Mapping[str, Any]]) -> dict[str, Json]:
    """The rubric that asks a case's questions, in their order."""
    return {"type": "object", "properties": {key: property_of(asked) for key, asked in questions.items()}}


def property_of(question: Mapping[str, Any]) -> dict[str, Json]:
    """The property schema of one question.

    Raises:
        ValueError: it is of no type that the data set is known to have.
    """
    title: str = question["instructions"]
    match question["type"]:
        case "noul":
            return {"title": title, "type": "boolean"}
        case "choice":
            return {
                "title": title,
                "oneOf": [{"const": key, "description": text} for key, text in question["criteria"].items()],
            }
        case "score":
            levels = "; ".join(f"{level}: {text}" for level, text in enumerate(question["criteria"]))
            bounds = {"minimum": 0, "maximum": len(question["criteria"]) - 1}
            return {"title": title, "description": levels, "type": "integer", **bounds}
        case other:
            raise ValueError(f"a public question of type {other!r} has no form here")
