"""Samples: a message, a rubric about it, and the right answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, TypeAlias

from engine.demo.family import Family, FamilyKind, Split, Value, overlap
from engine.demo.message import Message, compose

Scalar: TypeAlias = str | int | bool
Answer: TypeAlias = Scalar | list[str]
Schema: TypeAlias = dict[str, Any]

MAX_OPTIONS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardness:
    """How much a sample asks of its reader.

    Attributes:
        questions, options, extras: at most so many; extras are sentences that nothing is asked about.
        absent_share: of questions about what the message does not say.
    """

    questions: int = 6
    options: int = MAX_OPTIONS
    extras: int = 3
    absent_share: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question of a sample.

    Attributes:
        family: what it is about.
        values: per option of the schema, the key of the value that it stands for; None stands for "nothing is said".
    """

    family: Family
    values: tuple[str | None, ...]
    schema: Schema
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A sentence of a message, and what it says.

    Attributes:
        text: as the message has it, but for its first letter and its last full stop.
    """

    family: Family
    value: Value
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A message, what it states, and questions about it in the rubric's order."""

    state: Message
    stated: tuple[Stated, ...]
    asked: tuple[Asked, ...]

    @property
    def rubric(self) -> Schema:
        """The questions as JSON Schema."""
        return {"type": "object", "properties": {f"q{n}": one.schema for n, one in enumerate(self.asked)}}


class Sampler:
    """Draws samples whose sentences come from patterns of one split."""

    def __init__(self, families: Sequence[Family], split: Split, hardness: Hardness | None = None) -> None:
        self._families = families
        self._split = split
        self._hardness = hardness or Hardness()

    def sample(self, random: Random, family: Family | None = None) -> Sample:
        """A sample; about this family, among others, if one is given."""
        families = self._choose(random, family)
        stated: list[Stated] = []
        asked = [self._ask(random, one, stated) for one in families]
        for extra in self._extras(random, families):
            self._state(random, extra, random.choice(extra.values), stated)
        random.shuffle(asked)
        state, said = compose(random, [one.text for one in stated])
        texts = zip(stated, said, strict=True)
        return Sample(state=state, stated=tuple(replace(one, text=text) for one, text in texts), asked=tuple(asked))

    def _choose(self, random: Random, first: Family | None) -> list[Family]:
        """Families none of whose sentences say anything of another."""
        chosen = [first or random.choice(self._families)]
        wanted = random.randint(1, self._hardness.questions)
        for candidate in random.sample(self._families, len(self._families)):
            if len(chosen) >= wanted:
                break
            if candidate not in chosen and not any(overlap(candidate, one) for one in chosen):
                chosen.append(candidate)
        return chosen

    def _extras(self, random: Random, asked: Sequence[Family]) -> Iterator[Family]:
        wanted = random.randint(0, self._hardness.extras)
        for candidate in random.sample(self._families, len(self._families)):
            if wanted and candidate not in asked and not any(overlap(candidate, one) for one in asked):
                wanted -= 1
                yield candidate

    def _ask(self, random: Random, family: Family, stated: list[Stated]) -> Asked:
        match family.kind:
            case FamilyKind.BOOLEAN:
                return self._ask_boolean(random, family, stated)
            case FamilyKind.SCORE:
                return self._ask_score(random, family, stated)
            case _ if random.random() < 0.1:
                return self._ask_selection(random, family, stated)
            case _:
                return self._ask_choice(random, family, stated)

    def _ask_boolean(self, random: Random, family: Family, stated: list[Stated]) -> Asked:
        value = None if self._is_absent(random) else family.value(random.choice(("yes", "no")))
        if value:
            self._state(random, family, value, stated)
        is_yes = value is not None and value.key == "yes"
        if random.random() < 0.15:
            yes, no = random.choice((("yes", "no"), ("Yes", "No"), ("true", "false")))
            options = [yes, no] if random.random() < 0.5 else [no, yes]
            schema = {"title": self._question(random, family), "enum": options}
            values = ("yes", "no") if options[0] == yes else ("no", "yes")
            return Asked(family=family, values=values, schema=schema, answer=yes if is_yes else no)
        schema = {"title": self._question(random, family), "type": "boolean"}
        return Asked(family=family, values=("yes", "no"), schema=schema, answer=is_yes)

    def _ask_score(self, random: Random, family: Family, stated: list[Stated]) -> Asked:
        value = random.choice(family.values)
        self._state(random, family, value, stated)
        levels = [int(level.key) for level in family.values]
        schema: Schema = {
            "title": self._question(random, family),
            "type": "integer",
            "minimum": min(levels),
            "maximum": max(levels),
            "x-option-descriptions": {level.key: random.choice(level.names) for level in family.values},
        }
        values = tuple(level.key for level in family.values)
        return Asked(family=family, values=values, schema=schema, answer=int(value.key))

    def _ask_choice(self, random: Random, family: Family, stated: list[Stated]) -> Asked:
        value = None if self._is_absent(random) else random.choice(family.values)
        if value:
            self._state(random, family, value, stated)
        others = [one for one in family.values if one is not value]
        has_absence = value is None or (self._hardness.options > 2 and random.random() < 0.3)
        room = self._hardness.options - has_absence - (value is not None)
        shown = random.sample(others, min(len(others), random.randint(1, max(1, room))))
        names = {one.key: random.choice(one.names) for one in (*shown, *([value] if value else []))}
        options = [(names[one.key], one) for one in family.values if one.key in names]
        absence = random.choice(family.absences)
        listed: list[tuple[str, Value | None]] = [*options, *([(absence, None)] if has_absence else [])]
        random.shuffle(listed)
        answer = names[value.key] if value else absence
        schema = {"title": self._question(random, family), **_choice_options(random, listed)}
        values = tuple(one.key if one else None for _, one in listed)
        return Asked(family=family, values=values, schema=schema, answer=answer)

    def _ask_selection(self, random: Random, family: Family, stated: list[Stated]) -> Asked:
        said = random.sample(family.values, random.choice((0, 1, 1, 2, 2, 3)) % (len(family.values) + 1))
        for value in said:
            self._state(random, family, value, stated)
        names = {value.key: random.choice(value.names) for value in family.values}
        items = random.sample(list(names.values()), len(names))
        wording = random.choice(("Which of these are mentioned: {}", "{}: all that apply", "{} (several are possible)"))
        title = wording.format(self._question(random, family))
        schema = {"title": title, "type": "array", "items": {"enum": items}}
        chosen = {names[value.key] for value in said}
        keys = {name: key for key, name in names.items()}
        answer: Answer = [item for item in items if item in chosen]
        return Asked(family=family, values=tuple(keys[item] for item in items), schema=schema, answer=answer)

    def _is_absent(self, random: Random) -> bool:
        return random.random() < self._hardness.absent_share

    def _state(self, random: Random, family: Family, value: Value, stated: list[Stated]) -> None:
        text = random.choice(value.of(self._split)).sentence(random)
        stated.append(Stated(family=family, value=value, text=text))

    def _question(self, random: Random, family: Family) -> str:
        return random.choice(family.questions)


def _choice_options(random: Random, listed: Sequence[tuple[str, Value | None]]) -> Schema:
    """The options as `enum`, or each explained."""
    if random.random() < 0.6:
        return {"enum": [name for name, _ in listed]}
    options: list[Schema] = []
    for name, value in listed:
        option: Schema = {"const": name}
        if value is not None and value.descriptions and random.random() < 0.8:
            option["description"] = random.choice(value.descriptions)
        options.append(option)
    return {"oneOf": options}
