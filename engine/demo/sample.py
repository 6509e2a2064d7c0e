"""Samples: a message, a rubric about it, and the right answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from random import Random
from typing import Any, TypeAlias

from engine.demo.family import Family, FamilyKind, Split, Value, overlap
from engine.demo.message import Message, compose, talk

Scalar: TypeAlias = str | int | bool
Answer: TypeAlias = Scalar | list[str]
Schema: TypeAlias = dict[str, Any]

MAX_OPTIONS = 8
# Of messages that say something for another domain beside everything else.
FOREIGN_SENTENCE_SHARE = 0.05
# Sentences of a message about which nothing is asked.
STATEMENTS = (6, 16)
# Of choices, those that ask for every value that is named; of booleans, those written as a choice of yes and no.
SELECTION_SHARE, WRITTEN_BOOLEAN_SHARE = 0.1, 0.15


class Stance(Enum):
    """What a message says of a question: an answer; nothing, which is an answer too; nothing, so none is right."""

    STATED = auto()
    ABSENT = auto()
    OPEN = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardness:
    """How much a sample asks of its reader.

    Attributes:
        questions, options, extras: at most so many; extras are sentences that nothing is asked about.
        absent_share: of questions about what the message does not say, and that can be answered so.
        open_share: of questions about what the message does not say, and that have no option for that.
        foreign_share: of messages that are not for a healthcare assistant at all.
    """

    questions: int = 6
    options: int = MAX_OPTIONS
    extras: int = 3
    absent_share: float = 0.15
    open_share: float = 0.04
    foreign_share: float = 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question of a sample.

    Attributes:
        family: what it is about.
        values: per option of the schema, the key of the value that it stands for; None stands for "nothing is said".
        answer: None if none of the options is right.
    """

    family: Family
    values: tuple[str | None, ...]
    schema: Schema
    answer: Answer | None


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
        self._hardness = hardness or Hardness()
        # Once: a split is found by hashing every pattern of a value.
        self._patterns = {(family.key, value.key): value.of(split) for family in families for value in family.values}

    def sample(self, random: Random, family: Family | None = None) -> Sample:
        """A sample; about this family, among others, if one is given."""
        families = self._choose(random, family)
        if random.random() < self._hardness.foreign_share:
            return self._foreign(random, families)
        stated: list[Stated] = []
        asked = [self._ask(random, one, self._stance(random), stated) for one in families]
        for extra in self._extras(random, families):
            self._state(random, extra, random.choice(extra.values), stated)
        random.shuffle(asked)
        others = [talk(random, "foreign_topic")] if random.random() < FOREIGN_SENTENCE_SHARE else []
        return _sample(random, stated, others, asked)

    def statements(self, random: Random) -> Sample:
        """A message that says much, of any families, and about which nothing is asked."""
        stated: list[Stated] = []
        for family in random.choices(self._families, k=random.randint(*STATEMENTS)):
            self._state(random, family, random.choice(family.values), stated)
        return _sample(random, stated, [], [])

    def _foreign(self, random: Random, families: Sequence[Family]) -> Sample:
        """A message about something else altogether."""
        stances = (Stance.ABSENT, Stance.OPEN)
        asked = [self._ask(random, one, random.choice(stances), []) for one in families]
        return _sample(random, [], [talk(random, "foreign_topic") for _ in range(random.randint(1, 3))], asked)

    def _stance(self, random: Random) -> Stance:
        weights = (self._hardness.absent_share, self._hardness.open_share)
        return random.choices((Stance.ABSENT, Stance.OPEN, Stance.STATED), (*weights, 1 - sum(weights)))[0]

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

    def _ask(self, random: Random, family: Family, stance: Stance, stated: list[Stated]) -> Asked:
        match family.kind:
            case FamilyKind.BOOLEAN:
                return self._ask_boolean(random, family, stance, stated)
            case FamilyKind.SCORE:
                return self._ask_score(random, family, stance, stated)
            case _ if random.random() < SELECTION_SHARE:
                return self._ask_selection(random, family, stance, stated)
            case _:
                return self._ask_choice(random, family, stance, stated)

    def _ask_boolean(self, random: Random, family: Family, stance: Stance, stated: list[Stated]) -> Asked:
        value = family.value(random.choice(("yes", "no"))) if stance is Stance.STATED else None
        self._state(random, family, value, stated)
        is_yes = value is not None and value.key == "yes"
        if random.random() < WRITTEN_BOOLEAN_SHARE:
            yes, no = random.choice((("yes", "no"), ("Yes", "No"), ("true", "false")))
            options = [yes, no] if random.random() < 0.5 else [no, yes]
            schema = {"title": self._question(random, family), "enum": options}
            values = ("yes", "no") if options[0] == yes else ("no", "yes")
            return Asked(family=family, values=values, schema=schema, answer=yes if is_yes else no)
        schema = {"title": self._question(random, family), "type": "boolean"}
        return Asked(family=family, values=("yes", "no"), schema=schema, answer=is_yes)

    def _ask_score(self, random: Random, family: Family, stance: Stance, stated: list[Stated]) -> Asked:
        # A score has no option for what is not said, so silence leaves it open too.
        value = random.choice(family.values) if stance is Stance.STATED else None
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
        return Asked(family=family, values=values, schema=schema, answer=int(value.key) if value else None)

    def _ask_choice(self, random: Random, family: Family, stance: Stance, stated: list[Stated]) -> Asked:
        value = random.choice(family.values) if stance is Stance.STATED else None
        self._state(random, family, value, stated)
        others = [one for one in family.values if one is not value]
        may_be_absent = stance is Stance.STATED and self._hardness.options > 2
        has_absence = stance is Stance.ABSENT or (may_be_absent and random.random() < 0.3)
        room = self._hardness.options - has_absence - (value is not None)
        fewest = 2 if stance is Stance.OPEN else 1
        shown = random.sample(others, min(len(others), random.randint(fewest, max(fewest, room))))
        names = {one.key: random.choice(one.names) for one in (*shown, *([value] if value else []))}
        options = [(names[one.key], one) for one in family.values if one.key in names]
        absence = random.choice(family.absences)
        listed: list[tuple[str, Value | None]] = [*options, *([(absence, None)] if has_absence else [])]
        random.shuffle(listed)
        answer = names[value.key] if value else absence if has_absence else None
        schema = {"title": self._question(random, family), **_choice_options(random, listed)}
        values = tuple(one.key if one else None for _, one in listed)
        return Asked(family=family, values=values, schema=schema, answer=answer)

    def _ask_selection(self, random: Random, family: Family, stance: Stance, stated: list[Stated]) -> Asked:
        count = random.choice((0, 1, 1, 2, 2, 3)) if stance is Stance.STATED else 0
        said = random.sample(family.values, min(count, len(family.values)))
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

    def _state(self, random: Random, family: Family, value: Value | None, stated: list[Stated]) -> None:
        """Have the message say it, if there is anything to say."""
        if value is None:
            return
        text = random.choice(self._patterns[family.key, value.key]).sentence(random)
        stated.append(Stated(family=family, value=value, text=text))

    def _question(self, random: Random, family: Family) -> str:
        return random.choice(family.questions)


def _sample(random: Random, stated: Sequence[Stated], others: Sequence[str], asked: Sequence[Asked]) -> Sample:
    """A message of these sentences and others, and what it then says word for word."""
    state, said = compose(random, [one.text for one in stated], others)
    texts = zip(stated, said, strict=True)
    return Sample(state=state, stated=tuple(replace(one, text=text) for one, text in texts), asked=tuple(asked))


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
