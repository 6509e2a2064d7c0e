"""What a rubric asks: questions, their kinds, and the options of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.canvas.json import JsonScalar, escape


class Kind(StrEnum):
    """How a question's options relate to each other."""

    BOOLEAN = "boolean"
    CHOICE = "choice"
    SCORE = "score"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One admissible answer.

    Attributes:
        value: what stands in the decision.
        key: what stands in `probabilities`: the value itself when it is a string, else its JSON text.
        text: what the prompt shows for it.
    """

    value: JsonScalar
    key: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of a rubric.

    Attributes:
        name: the property's name. It never reaches the model: names act as instructions, and renaming one must not
            move an answer.
        text: title and description, as the prompt shows them; may be empty.
        options: in the rubric's order, at least two.
    """

    name: str
    kind: Kind
    text: str
    options: tuple[Option, ...]

    @property
    def id(self) -> str:
        """The question's place in the decision: a JSON Pointer without the leading slash."""
        return escape(self.name)
