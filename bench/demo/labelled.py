"""Requests whose answers are known: held-out samples, messages written by hand, messages about other things."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from engine.demo.family import Family, FamilyKind, Split
from engine.demo.message import talk
from engine.demo.sample import Answer, Sampler

LAYOUTS = ("joint", "split", "isolated")
ORDERS = ("rubric_first", "state_first")
Schema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A request and what should be answered.

    Attributes:
        expected: per property that is looked at; None where no answer is right.
        families: per property, what its question is about.
    """

    body: Mapping[str, Any]
    expected: Mapping[str, Answer | None]
    families: Mapping[str, str]

    def read_once(self) -> Labelled:
        """The same request without reading again."""
        policy = {**self.body.get("policy", {}), "max_reads": 1}
        return replace(self, body={**self.body, "policy": policy})

    def permuted(self, random: Random) -> Labelled:
        """The same request with the options of each question in another order."""
        rubric = self.body["rubric"]
        properties = {name: _permuted(schema, random) for name, schema in rubric["properties"].items()}
        body = {**self.body, "rubric": {**rubric, "properties": properties}}
        return Labelled(body=body, expected=self.expected, families=self.families)


def held_out(families: Sequence[Family], split: Split, questions: int) -> Iterator[Labelled]:
    """Samples of a split until there are so many questions: every family in turn, every layout and order."""
    random, sampler = Random(f"labelled {split}"), Sampler(families, split)  # noqa: S311 - repeatable, not secret
    while questions > 0:
        for family in families:
            sample = sampler.sample(random, family)
            known = {f"q{n}": one for n, one in enumerate(sample.asked) if one.answer is not None}
            policy = {"layout": random.choice(LAYOUTS), "order": random.choice(ORDERS)}
            yield Labelled(
                body={"state": sample.state, "rubric": sample.rubric, "policy": policy},
                expected={name: asked.answer for name, asked in known.items()},
                families={name: asked.family.key for name, asked in known.items()},
            )
            questions -= len(known)


def from_file(file: Path) -> Iterator[Labelled]:
    """Requests written by hand: a JSON array of state, rubric and what is expected."""
    for entry in json.loads(file.read_text(encoding="utf-8")):
        body = {"state": entry["state"], "rubric": entry["rubric"]}
        yield Labelled(body=body, expected=entry["expected"], families=dict.fromkeys(entry["expected"], "by hand"))


def foreign(families: Sequence[Family], messages: int) -> Iterator[Labelled]:
    """Messages about cars and cooking; one choice each, with or without an option for "none of these"."""
    random = Random("foreign")  # noqa: S311 - to be repeatable, not secret
    choices = [family for family in families if family.kind is FamilyKind.CHOICE]
    for number in range(messages):
        family = random.choice(choices)
        has_absence = number % 2 == 0
        absence = random.choice(family.absences)
        names = [random.choice(value.names) for value in family.values]
        options = random.sample([*names, absence], len(names) + 1) if has_absence else names
        state = ". ".join(talk(random, "unseen_topic") for _ in range(random.randint(1, 2)))
        schema = {"title": random.choice(family.questions), "enum": options}
        yield Labelled(
            body={"state": state, "rubric": {"type": "object", "properties": {"q0": schema}}},
            expected={"q0": absence if has_absence else None},
            families={"q0": family.key},
        )


def _permuted(schema: Schema, random: Random) -> Schema:
    for key in ("enum", "oneOf"):
        if key in schema:
            return {**schema, key: random.sample(schema[key], len(schema[key]))}
    if "items" in schema:
        return {**schema, "items": _permuted(schema["items"], random)}
    return schema
