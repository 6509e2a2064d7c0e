"""`{"type": "number", "minimum": 0, "maximum": 1}`: how probable "yes" is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from app.canvas.alternatives import described, lists_values
from app.canvas.demands import NotAnOption
from app.canvas.distribution import Distribution
from app.canvas.json import Json
from app.canvas.levels import LEVEL_KEYWORDS
from app.canvas.option import NO, YES
from app.canvas.question import Kind, Question, Reading
from app.canvas.site import Reader, Site


@dataclass(frozen=True, kw_only=True)
class Probability(Question):
    """Yes or no, of which the decision holds the probability of yes."""

    kind = Kind.PROBABILITY
    default_text = "Yes or no?"
    asks_null = False

    @classmethod
    def claims(cls, site: Site) -> bool:
        return site.schema.get("type") == "number" and not (site.has("multipleOf") or lists_values(site))

    @classmethod
    def parse(cls, site: Site, reader: Reader, path: tuple[str, ...], text: str) -> Self:
        reader.refuse(site, LEVEL_KEYWORDS | {"type"})
        exclusive = tuple(filter(site.has, ("exclusiveMinimum", "exclusiveMaximum")))
        for keyword in exclusive:
            reader.complain(site.at(keyword), "bad_bound", 'a probability has the bounds "minimum" 0 and "maximum" 1')
        for keyword, bound in () if exclusive else (("minimum", 0), ("maximum", 1)):
            given = site.schema.get(keyword)
            if isinstance(given, bool) or given != bound:
                message = f'"{keyword}" must be {bound}: a number is a probability, or a grid with "multipleOf"'
                reader.complain(site.at(keyword), "bad_bound", message)
        return cls(path=path, text=text, options=tuple(described((YES, NO), site, reader)))

    @property
    def schema(self) -> Mapping[str, Json]:
        return {"type": "number", "minimum": 0, "maximum": 1}

    def answer(self, distributions: Sequence[Distribution]) -> Reading:
        reading = super().answer(distributions)
        return replace(reading, value=reading.probabilities[0])

    def standing_in(self, value: Json) -> Json:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise NotAnOption
        return value
