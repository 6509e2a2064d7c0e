"""`{"type": "array", "items": {"enum": [...]}}`: any number of several values, one yes-or-no slot each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from app.canvas.alternatives import described, options_of
from app.canvas.demands import NotAnOption
from app.canvas.distribution import Distribution, choice_confidence, entropy, margin
from app.canvas.json import Json, sentences
from app.canvas.label import Label, option_lines
from app.canvas.option import NO, YES, Option, find_option
from app.canvas.question import Kind, Question, Reading
from app.canvas.site import Reader, Site

KEYWORDS = frozenset({"type", "items", "uniqueItems", "minItems", "maxItems"})


@dataclass(frozen=True, kw_only=True)
class Selection(Question):
    """Any number of several values, within bounds.

    Attributes:
        least, most: how many the decision holds.
    """

    kind = Kind.SELECTION
    default_text = "Which of these apply?"
    asks_null = False

    least: int
    most: int

    @classmethod
    def claims(cls, site: Site) -> bool:
        return site.schema.get("type") == "array"

    @classmethod
    def parse(cls, site: Site, reader: Reader, path: tuple[str, ...], text: str) -> Self:
        reader.refuse(site, KEYWORDS)
        if not isinstance(site.schema.get("uniqueItems", True), bool):
            reader.complain(site.at("uniqueItems"), "bad_unique_items", "must be true or false")
        options, about = _items(site, reader)
        least = _count(site, reader, "minItems", 0)
        most = min(_count(site, reader, "maxItems", len(options)), len(options))
        if options and least > most:
            message = "no list of distinct options, and no longer than allowed, is as long as that"
            reader.complain(site.at("minItems"), "bad_bound", message)
        return cls(path=path, text=sentences(text, about), options=options, least=least, most=most)

    @property
    def slot_options(self) -> tuple[Option, ...]:
        return YES, NO

    @property
    def lines(self) -> int:
        return len(self.options)

    @property
    def schema(self) -> Mapping[str, Json]:
        items: Json = {"enum": [option.value for option in self.options]}
        return {
            "type": "array",
            "items": items,  # different ones, for they are chosen from different ones
            "minItems": self.least,
            "maxItems": self.most,
        }

    def prompt(self, number: int, labels: Sequence[Label], rotation: int = 0) -> str:
        """The question, its two labels once for all, then a numbered line per option."""
        labelled = option_lines(labels, self.slot_options, rotation)
        lines = (f"{number + i}. {option.text}\n" for i, option in enumerate(self.options))
        return f"{sentences(self.text, 'Answer each of the lines below')}.\n" + labelled + "".join(lines)

    def choose(self, distributions: Sequence[Distribution]) -> tuple[int, ...]:
        """The likeliest list that the bounds admit: options are independent, so that is the most probable ones."""
        yes = [distribution[0] for distribution in distributions]
        by_probability = sorted(range(len(yes)), key=lambda i: -yes[i])
        wanted = sum(p > 0.5 for p in yes)
        return tuple(sorted(by_probability[: min(max(wanted, self.least), self.most)]))

    def answer(self, distributions: Sequence[Distribution]) -> Reading:
        yes = tuple(distribution[0] for distribution in distributions)
        chosen = set(self.choose(distributions))
        # As they are in the decision: a bound may have it hold what is not likely, and the other way round.
        held = [p if i in chosen else 1.0 - p for i, p in enumerate(yes)]
        least_sure = held.index(min(held))
        return Reading(
            value=[option.value for i, option in enumerate(self.options) if i in chosen],
            probability=held[least_sure],
            probabilities=yes,
            entropy=max(map(entropy, distributions)),
            confidence=min(map(choice_confidence, distributions)),
            margin=min(map(margin, distributions)),
            cell=(least_sure, 0 if least_sure in chosen else 1),
        )

    def standing_in(self, value: Json) -> Json:
        if not isinstance(value, list) or not self.least <= len(value) <= self.most:
            raise NotAnOption
        found = [find_option(self.options, item) for item in value]
        chosen = [option.value for option in self.options if option in found]
        if len(chosen) != len(value):  # not an option, or one twice
            raise NotAnOption
        return chosen


def _items(site: Site, reader: Reader) -> tuple[tuple[Option, ...], str]:
    """The options, and what is said of all of them."""
    if not site.has("items"):
        reader.complain(site.path, "unsupported_question", 'an array must have "items" that list its options')
        return (), ""
    items = reader.open(site.schema["items"], site.at("items"), site)
    if items is None:
        return (), ""
    options = options_of(items, reader, least=1, share_a_slot=False)
    is_one_option = items.has("const")  # then the texts are the option's
    about = "" if is_one_option else sentences(reader.text(items, "title"), reader.text(items, "description"))
    return tuple(described(options, site, reader)), about


def _count(site: Site, reader: Reader, keyword: str, default: int) -> int:
    count = site.schema.get(keyword, default)
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        reader.complain(site.at(keyword), "bad_bound", "must be a whole number, and not negative")
        return default
    return count
