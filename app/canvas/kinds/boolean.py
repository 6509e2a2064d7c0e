"""`{"type": "boolean"}`: yes or no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from app.canvas.alternatives import described, lists_values
from app.canvas.demands import NotAnOption
from app.canvas.json import Json
from app.canvas.option import NO, YES
from app.canvas.question import Kind, Question
from app.canvas.site import Reader, Site


@dataclass(frozen=True, kw_only=True)
class Boolean(Question):
    """Yes or no."""

    kind = Kind.BOOLEAN
    default_text = "Yes or no?"

    @classmethod
    def claims(cls, site: Site) -> bool:
        return site.schema.get("type") == "boolean" and not lists_values(site)

    @classmethod
    def parse(cls, site: Site, reader: Reader, path: tuple[str, ...], text: str) -> Self:
        reader.refuse(site, frozenset({"type"}))
        return cls(path=path, text=text, options=tuple(described((YES, NO), site, reader)))


@dataclass(frozen=True, kw_only=True)
class Presence(Boolean):
    """Whether an object that may be null is there: asked ahead of its properties, which are skipped if it is not."""

    default_text = "Is there one?"

    def decided(self, value: Json) -> Json:
        return {} if value else None

    def standing_in(self, value: Json) -> Json:
        """Only null: an object could not say what it holds."""
        if value is not None:
            raise NotAnOption
        return False
