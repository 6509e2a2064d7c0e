"""`enum`, or `oneOf` or `anyOf` of `const`: one of several values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from app.canvas.alternatives import options_of
from app.canvas.question import Kind, Question
from app.canvas.site import Reader, Site


@dataclass(frozen=True, kw_only=True)
class Choice(Question):
    """One of several values."""

    kind = Kind.CHOICE
    default_text = "Which one fits?"

    @classmethod
    def claims(cls, site: Site) -> bool:
        return True

    @classmethod
    def parse(cls, site: Site, reader: Reader, path: tuple[str, ...], text: str) -> Self:
        return cls(path=path, text=text, options=options_of(site, reader))
