"""The families that were written, and how their files are read."""

from __future__ import annotations

import re
from random import Random

import pytest

from engine.demo.family import (
    BRACES,
    HELD_OUT_SHARE,
    PLACEHOLDERS,
    Family,
    FamilyKind,
    Pattern,
    Split,
    load_families,
    overlap,
    parse_family,
)

FILE = """
# about pain
@ pain | score
~ trend
? How strong is the pain?
? Pain
= 0 | none; no pain | it does not hurt
nothing hurts {at all|one bit}
no pain
= 1 | some
it hurts, [NAME] says
"""


@pytest.fixture(scope="module")
def families() -> tuple[Family, ...]:
    """All of them."""
    return load_families()


def test_a_file() -> None:
    """Key, kind, overlaps, questions, and values with their names, descriptions and patterns."""
    family = parse_family(FILE)
    assert (family.key, family.kind, family.overlapping) == ("pain", FamilyKind.SCORE, frozenset({"trend"}))
    assert family.questions == ("How strong is the pain?", "Pain")
    none, some = family.values
    assert (none.key, none.names, none.descriptions) == ("0", ("none", "no pain"), ("it does not hurt",))
    assert [pattern.text for pattern in none.patterns] == ["nothing hurts {at all|one bit}", "no pain"]
    assert (some.names, some.descriptions) == (("some",), ())


def test_sentences_of_a_pattern() -> None:
    """One alternative of each, placeholders filled, white space tidied."""
    random = Random(1)
    said = {Pattern("{i|we}  feel {|so} fine, [NAME]").sentence(random) for _ in range(200)}
    assert len(said) > 20
    assert all("  " not in one and "[" not in one and "{" not in one for one in said)
    assert any(one.startswith("we feel so fine, ") for one in said)
    assert any(one.startswith("i feel fine, ") for one in said)


def test_there_are_enough(families: tuple[Family, ...]) -> None:
    """Families, distinct patterns, wordings of questions, patterns of each value."""
    patterns = [pattern.text for family in families for value in family.values for pattern in value.patterns]
    assert len(families) >= 40
    assert len(set(patterns)) == len(patterns) >= 4000
    assert all(len(family.questions) >= 8 for family in families)
    assert all(len(value.patterns) >= 16 for family in families for value in family.values)


def test_every_family_is_whole(families: tuple[Family, ...]) -> None:
    """Booleans are yes and no, scores count from 0, choices can say that nothing was said; overlaps exist."""
    keys = {family.key for family in families}
    assert len(keys) == len(families)
    for family in families:
        values = [value.key for value in family.values]
        assert family.overlapping <= keys
        match family.kind:
            case FamilyKind.BOOLEAN:
                assert values == ["yes", "no"]
            case FamilyKind.SCORE:
                assert values == [str(level) for level in range(len(values))]
            case _:
                assert len(set(values)) == len(values) >= 3
                assert len(family.absences) >= 4
        assert family.kind is FamilyKind.BOOLEAN or all(len(value.names) >= 3 for value in family.values)


def test_patterns_can_be_expanded(families: tuple[Family, ...]) -> None:
    """Braces are balanced and flat, and every sentence says something."""
    random = Random(2)
    for pattern in (pattern for family in families for value in family.values for pattern in value.patterns):
        assert "{" not in BRACES.sub("", pattern.text)
        assert "}" not in BRACES.sub("", pattern.text)
        assert len(pattern.sentence(random)) > 2


def test_splits_share_no_pattern(families: tuple[Family, ...]) -> None:
    """All splits together are all patterns, and each is what it is every time; some of every value are in each."""
    for value in (value for family in families for value in family.values):
        splits = [value.of(split) for split in Split]
        assert sorted(pattern.text for split in splits for pattern in split) == sorted(p.text for p in value.patterns)
        assert all(splits)
        assert len(value.of(Split.HELD_OUT)) == pytest.approx(HELD_OUT_SHARE * len(value.patterns), abs=1)


def test_no_held_out_sentence_is_a_sentence_of_a_trained_pattern(families: tuple[Family, ...]) -> None:
    """Patterns that differ may still be able to say the same."""
    random = Random(3)
    for family in families:
        trained = re.compile("|".join(_as_regex(p) for value in family.values for p in value.of(Split.TRAINED)))
        for pattern in (p for value in family.values for p in value.of(Split.HELD_OUT)):
            for _ in range(5):
                sentence = pattern.sentence(random)
                assert not trained.fullmatch(sentence), (family.key, pattern.text, sentence)


def _as_regex(pattern: Pattern) -> str:
    """What matches the sentences of a pattern, but for white space beside an alternative that is empty."""
    text = pattern.text
    for placeholder, values in PLACEHOLDERS.items():
        text = text.replace(placeholder, "{" + "|".join(values) + "}")
    plain_and_braces = re.split(r"\{([^{}]*)\}", text)
    parts = [
        "(?:" + "|".join(map(re.escape, part.split("|"))) + ")" if number % 2 else re.escape(part)
        for number, part in enumerate(plain_and_braces)
    ]
    return "(?:" + "".join(parts) + ")"


def test_overlaps_go_both_ways(families: tuple[Family, ...]) -> None:
    """Whichever of two families says so."""
    one = next(family for family in families if family.overlapping)
    other = next(family for family in families if family.key in one.overlapping)
    assert overlap(one, other)
    assert overlap(other, one)
