"""Samples: what they ask can be asked, what they answer is right, what they say is in the message."""

from __future__ import annotations

import json
from random import Random

import jsonschema
import pytest

from app.canvas.plan import Planner
from app.canvas.prompt import state_text
from engine.demo.family import Family, FamilyKind, Split, load_families, overlap
from engine.demo.sample import Hardness, Sample, Sampler

COUNT = 300


@pytest.fixture(scope="module")
def families() -> tuple[Family, ...]:
    """All of them."""
    return load_families()


def drawn(families: tuple[Family, ...], split: Split = Split.TRAINED, hardness: Hardness | None = None) -> list[Sample]:
    """Samples of a seed."""
    sampler, random = Sampler(families, split, hardness), Random(3)
    return [sampler.sample(random) for _ in range(COUNT)]


def test_a_seed_is_a_sample(families: tuple[Family, ...]) -> None:
    assert drawn(families) == drawn(families)


def test_rubrics_are_accepted_and_answers_satisfy_them(families: tuple[Family, ...], planner: Planner) -> None:
    """By the service's own compiler, and by an independent validator."""
    for sample in drawn(families):
        plan = planner.plan(sample.rubric)
        assert len(plan.questions) == len(sample.asked)
        known = {f"q{n}": one.answer for n, one in enumerate(sample.asked) if one.answer is not None}
        jsonschema.validate(known, sample.rubric)


def test_options_stand_for_values(families: tuple[Family, ...], planner: Planner) -> None:
    """One value per option, in the order in which the service shows them; the right one is what the message states.

    None is right only of a choice or a score about which nothing is said and that has no option for that.
    """
    for sample in drawn(families):
        stated = {one.family.key: one.value.key for one in sample.stated}
        for asked, question in zip(sample.asked, planner.plan(sample.rubric).questions, strict=True):
            assert len(asked.values) == len(question.options)
            if isinstance(asked.answer, list) or asked.family.kind is FamilyKind.BOOLEAN:
                continue
            if asked.answer is None:
                assert asked.family.key not in stated
                assert None not in asked.values
                continue
            (right,) = [option for option in question.options if option.value == asked.answer]
            assert asked.values[question.options.index(right)] == stated.get(asked.family.key)


def test_what_is_stated_is_in_the_message(families: tuple[Family, ...]) -> None:
    """As the model will see it, but for its first letter and last full stop; in a record, as JSON writes it."""
    for sample in drawn(families):
        text = state_text(sample.state)
        for one in sample.stated:
            said = one.text.rstrip(".,;")[1:]
            assert said in text.replace("\n  ", "\n") or json.dumps(said, ensure_ascii=False)[1:-1] in text


def test_no_sentence_speaks_of_another_question(families: tuple[Family, ...]) -> None:
    """Families that overlap are neither asked together nor mixed in."""
    for sample in drawn(families):
        said = {one.family.key: one.family for one in sample.stated} | {
            one.family.key: one.family for one in sample.asked
        }
        asked = {one.family.key for one in sample.asked}
        for key in asked:
            assert not any(overlap(said[key], other) for other in said.values() if other.key != key)


def test_some_messages_are_for_others(families: tuple[Family, ...]) -> None:
    """They state nothing, and whatever is asked has no answer or is not said."""
    samples = drawn(families, hardness=Hardness(foreign_share=1.0))
    assert not any(sample.stated for sample in samples)
    answers = [one.answer for sample in samples for one in sample.asked if one.family.kind is FamilyKind.CHOICE]
    assert any(answer is None for answer in answers)
    assert any(isinstance(answer, str) for answer in answers)


def test_splits_say_different_things(families: tuple[Family, ...]) -> None:
    """No trained sample holds a sentence of a held-out pattern."""
    held_out = {p.text for family in families for value in family.values for p in value.of(Split.HELD_OUT)}
    plain = {text.lower() for text in held_out if "{" not in text and "[" not in text}
    said = {one.text.lower() for sample in drawn(families) for one in sample.stated}
    assert not said & plain
    assert {one.text.lower() for sample in drawn(families, Split.HELD_OUT) for one in sample.stated} & plain


def test_hardness_is_a_bound(families: tuple[Family, ...]) -> None:
    """Questions, options and extras."""
    easy = drawn(families, hardness=Hardness(questions=1, options=2, extras=0, absent_share=0.0))
    assert {len(sample.asked) for sample in easy} == {1}
    choices = [one for sample in easy for one in sample.asked if "enum" in one.schema or "oneOf" in one.schema]
    assert max(len(one.values) for one in choices) == 2
    hard = drawn(families)
    assert {len(sample.asked) for sample in hard} == set(range(1, 7))
    assert max(len(json.dumps(sample.state)) for sample in hard) > 400
