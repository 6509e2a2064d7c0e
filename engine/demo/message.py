"""From sentences to a message as people send it: order, spelling, punctuation, turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from engine.demo.small_talk import small_talk

Message: TypeAlias = str | list[dict[str, str]] | dict[str, str]

KEYBOARD_NEIGHBOURS = {
    "a": "sq", "b": "vn", "c": "xv", "d": "sf", "e": "wr", "f": "dg", "g": "fh", "h": "gj", "i": "uo", "k": "jl",
    "l": "k", "m": "n", "n": "bm", "o": "ip", "p": "o", "r": "et", "s": "ad", "t": "ry", "u": "yi", "v": "cb",
    "w": "qe", "y": "tu",
}  # fmt: skip
MIN_TYPO_CHARS = 5


def compose(random: Random, sentences: Sequence[str], others: Sequence[str] = ()) -> tuple[Message, tuple[str, ...]]:
    """A message that says these things, in any order, with or without words around them; and how it says each.

    Args:
        others: what it says besides, of which it does not matter how it is said.
    """
    style = random.choices((_as_written, str.lower, str.upper), (0.7, 0.27, 0.03))[0]
    typos = random.choices((0.0, 0.03, 0.08), (0.75, 0.17, 0.08))[0]
    said = tuple(misspell(random, style(sentence), typos) for sentence in sentences)
    asides = (talk(random, "aside") for _ in range(random.choice((0, 0, 0, 1, 1, 2))))
    everything = [*said, *(misspell(random, style(other), typos) for other in (*others, *asides))]
    random.shuffle(everything)
    if random.random() < 0.3:
        everything.insert(0, talk(random, "greeting"))
    if random.random() < 0.25 or not everything:
        everything.append(talk(random, "closing"))
    return _shape(random, everything), said


def talk(random: Random, section: str) -> str:
    """A sentence of a section of small talk."""
    return random.choice(small_talk()[section]).sentence(random)


def misspell(random: Random, text: str, share: float) -> str:
    """The text with so many of its longer words misspelt."""
    if not share:
        return text
    words = text.split(" ")
    return " ".join(
        _typo(random, word) if len(word) >= MIN_TYPO_CHARS and random.random() < share else word for word in words
    )


def join(random: Random, sentences: Sequence[str]) -> str:
    """Sentences as one text."""
    separator = random.choices((". ", ", ", "\n", "! ", " "), (0.7, 0.1, 0.1, 0.05, 0.05))[0]
    begin: Callable[[str], str] = _capitalised if separator in (". ", "! ") and random.random() < 0.7 else _as_written
    ended = [sentence.rstrip(".,;") for sentence in sentences]
    text = "".join(
        begin(sentence) + (" " if sentence[-1:] in "?!" and separator != "\n" else separator) for sentence in ended
    )
    return text.rstrip(" ,\n") if random.random() < 0.5 else text.strip(" ,\n").rstrip(".!") + "."


def _shape(random: Random, said: Sequence[str]) -> Message:
    """One text, the turns of a conversation, or a record."""
    shape = random.choices(("text", "turns", "one turn", "record"), (0.55, 0.25, 0.15, 0.05))[0]
    match shape:
        case "turns" if len(said) > 1:
            return _turns(random, said)
        case "one turn":
            return [{"role": "user", "content": join(random, said)}]
        case "record":
            return {random.choice(("message", "text", "note", "request")): join(random, said)}
        case _:
            return join(random, said)


def _turns(random: Random, said: Sequence[str]) -> Message:
    cut = random.randint(1, len(said) - 1)
    turns: list[dict[str, str]] = []
    for part in (said[:cut], said[cut:]):
        turns.append({"role": "user", "content": join(random, part)})
        turns.append({"role": "assistant", "content": talk(random, "assistant")})
    return turns[: random.choice((3, 3, 3, 4))]


def _as_written(text: str) -> str:
    return text


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _typo(random: Random, word: str) -> str:
    at = random.randrange(1, len(word) - 1)
    match random.randrange(4):
        case 0:
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case 1:
            return word[:at] + word[at + 1 :]
        case 2:
            return word[:at] + word[at] + word[at:]
        case _:
            near = KEYBOARD_NEIGHBOURS.get(word[at].lower(), word[at])
            return word[:at] + random.choice(near) + word[at + 1 :]
