"""Families of questions about a message, and the sentence patterns that answer them.

A family is one file in `patterns/`, written by hand:

    @ pain | score                           its key and kind
    ~ emergency trend                        families that its sentences may also say something of
    ? How strong is the pain?                wordings of its question
    - not stated                             wordings of "nothing is said", for choices
    = 0 | none; no pain | it does not hurt   a value, names for it, descriptions of it
    nothing hurts {at all|one bit}           patterns below their value: what is in braces is interchangeable
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from importlib.resources import files
from random import Random

# Of a value's patterns, those that are never trained on: to test with, and to fit temperatures on.
HELD_OUT_SHARE, CALIBRATION_SHARE = 0.16, 0.04
BRACES = re.compile(r"\{([^{}]*)\}")
PLACEHOLDERS = {
    "[NAME]": ("Alex", "Maria", "Sam", "Jo", "Kim", "Ravi", "Lena", "Omar", "Nina", "Tom"),
    "[DRUG]": ("ibuprofen", "metformin", "lisinopril", "amoxicillin", "cetirizine", "sertraline"),
    "[DAY]": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "[NUMBER]": ("two", "three", "4", "5", "six", "10", "12"),
    "[TIME]": ("8 am", "9:30", "noon", "2 pm", "half past four", "6 o'clock"),
}


class FamilyKind(StrEnum):
    """How a family's values relate to each other."""

    CHOICE = "choice"
    BOOLEAN = "boolean"
    SCORE = "score"


class Split(StrEnum):
    """Which patterns may be used: no sentence of another than a trained pattern is ever trained on."""

    TRAINED = "trained"
    CALIBRATION = "calibration"
    HELD_OUT = "held_out"


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to say something."""

    text: str

    @property
    def rank(self) -> bytes:
        """An order that has nothing to do with the order in which patterns were written."""
        return sha256(self.text.encode()).digest()

    def sentence(self, random: Random) -> str:
        """One sentence of it."""
        chosen = BRACES.sub(lambda braces: random.choice(braces[1].split("|")), self.text)
        for placeholder, values in PLACEHOLDERS.items():
            chosen = chosen.replace(placeholder, random.choice(values))
        return " ".join(chosen.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One answer of a family.

    Attributes:
        names: what an option for it may be called.
        descriptions: what may explain it.
    """

    key: str
    names: tuple[str, ...]
    descriptions: tuple[str, ...]
    patterns: tuple[Pattern, ...]

    def of(self, split: Split) -> tuple[Pattern, ...]:
        """Its patterns of one split, the same ones every time."""
        ranked = sorted(self.patterns, key=lambda pattern: pattern.rank)
        held_out = max(1, round(HELD_OUT_SHARE * len(ranked)))
        trained = held_out + max(1, round(CALIBRATION_SHARE * len(ranked)))
        begin, end = {
            Split.HELD_OUT: (0, held_out),
            Split.CALIBRATION: (held_out, trained),
            Split.TRAINED: (trained, len(ranked)),
        }[split]
        return tuple(ranked[begin:end])


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One thing that can be asked of a message.

    Attributes:
        overlapping: families that its sentences may also say something of.
        questions: wordings of its question.
        absences: wordings of "nothing is said about it".
    """

    key: str
    kind: FamilyKind
    overlapping: frozenset[str]
    questions: tuple[str, ...]
    absences: tuple[str, ...]
    values: tuple[Value, ...]

    def value(self, key: str) -> Value:
        """The value of that key."""
        return next(value for value in self.values if value.key == key)


@dataclass(slots=True)
class _Draft:
    """A family while its file is being read."""

    overlapping: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    absences: list[str] = field(default_factory=list)
    values: list[tuple[list[str], list[Pattern]]] = field(default_factory=list)
    head: tuple[str, ...] = ()

    def take(self, line: str) -> None:
        """One line of the file, not empty and no comment."""
        mark, rest = line[0], line[1:].strip()
        match mark:
            case "@":
                self.head = _fields(rest)
            case "~":
                self.overlapping.extend(rest.split())
            case "?":
                self.questions.append(rest)
            case "-":
                self.absences.append(rest)
            case "=":
                self.values.append(([part.strip() for part in rest.split("|")], []))
            case _:
                self.values[-1][1].append(Pattern(line))

    def family(self) -> Family:
        """What the file says."""
        key, kind = self.head
        return Family(
            key=key,
            kind=FamilyKind(kind),
            overlapping=frozenset(self.overlapping),
            questions=tuple(self.questions),
            absences=tuple(self.absences),
            values=tuple(_value(parts, patterns) for parts, patterns in self.values),
        )


def parse_family(text: str) -> Family:
    """A family from its file."""
    draft = _Draft()
    for line in filter(None, map(str.strip, text.splitlines())):
        if not line.startswith("#"):
            draft.take(line)
    return draft.family()


def load_families() -> tuple[Family, ...]:
    """All families, by key; what overlaps does so both ways."""
    folder = files("engine.demo") / "patterns"
    found = sorted(folder.iterdir(), key=lambda file: file.name)
    return tuple(parse_family(file.read_text(encoding="utf-8")) for file in found if file.name.endswith(".txt"))


def overlap(one: Family, other: Family) -> bool:
    """Whether sentences of one may also say something of the other."""
    return other.key in one.overlapping or one.key in other.overlapping


def _value(parts: Sequence[str], patterns: Sequence[Pattern]) -> Value:
    key, names, descriptions = (*parts, "", "")[:3]
    return Value(
        key=key,
        names=tuple(_items(names)) or (key,),
        descriptions=tuple(_items(descriptions)),
        patterns=tuple(patterns),
    )


def _items(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, text.split(";")))


def _fields(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split("|"))
