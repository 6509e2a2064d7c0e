"""What stands around what a member wants: greetings, asides, the assistant's turns, and messages meant for others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from engine.demo.family import Pattern

SECTIONS = ("greeting", "closing", "aside", "assistant", "foreign_topic", "unseen_topic")


@cache
def small_talk() -> Mapping[str, tuple[Pattern, ...]]:
    """Patterns by section."""
    text = (files("engine.demo") / "small_talk.txt").read_text(encoding="utf-8")
    return parse_small_talk(text)


def parse_small_talk(text: str) -> Mapping[str, tuple[Pattern, ...]]:
    """Patterns by section, from the file's text."""
    found: dict[str, list[Pattern]] = {section: [] for section in SECTIONS}
    current: list[Pattern] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("#"):
            continue
        if line.startswith("[") and line.strip("[]") in found:
            current = found[line.strip("[]")]
        else:
            current.append(Pattern(line))
    return {section: tuple(patterns) for section, patterns in found.items()}
