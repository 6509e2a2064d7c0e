"""An integer with bounds, or a grid (`multipleOf`) of numbers: ordered levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from app.canvas.alternatives import check_options, described, lists_values
from app.canvas.distribution import Distribution, score_confidence
from app.canvas.levels import LEVEL_KEYWORDS, levels_of
from app.canvas.option import make_option
from app.canvas.question import Kind, Question, Reading
from app.canvas.site import Reader, Site


@dataclass(frozen=True, kw_only=True)
class Score(Question):
    """Ordered levels; the answer also has their mean."""

    kind = Kind.SCORE
    default_text = "Which level fits?"

    @classmethod
    def claims(cls, site: Site) -> bool:
        is_grid = site.schema.get("type") == "number" and site.has("multipleOf")
        is_levels = is_grid or site.schema.get("type") == "integer"
        return is_levels and not lists_values(site)

    @classmethod
    def parse(cls, site: Site, reader: Reader, path: tuple[str, ...], text: str) -> Self:
        reader.refuse(site, LEVEL_KEYWORDS | {"type"})
        levels = levels_of(site, reader, is_integer=site.schema["type"] == "integer")
        options = described(list(map(make_option, levels)), site, reader)
        if options:
            _remark_on_grid(site, levels, reader)
            check_options(options, site, reader, 2, reader.limits.max_labels)
        return cls(path=path, text=text, options=tuple(options))

    def answer(self, distributions: Sequence[Distribution]) -> Reading:
        (distribution,) = distributions
        levels = (option.value for option in self.options)
        expected = math.fsum(p * float(level or 0) for p, level in zip(distribution, levels, strict=True))
        confidence = score_confidence(distribution)
        return replace(super().answer(distributions), confidence=confidence, expected=expected)


def _remark_on_grid(site: Site, levels: Sequence[float], reader: Reader) -> None:
    """A level may be a multiple of the step and not be one to who divides floats."""
    step = site.schema.get("multipleOf", 1)
    assert isinstance(step, int | float), "a grid without a step; this is a bug"
    if any(level / step != round(level / step) for level in levels):
        message = "validators that divide floats do not take every level of this grid for a multiple of its step"
        reader.remark(site.at("multipleOf"), "inexact_grid", message)
