"""Tables in plain text that are Markdown tables too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Row: TypeAlias = tuple[object, ...]


def render_table(title: str, header: Sequence[str], rows: Sequence[Row]) -> str:
    """A titled table: the first column to the left, all others to the right."""
    cells = [list(header), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rule = [":" + "-" * (widths[0] - 1), *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [_line(row, widths) for row in (cells[0], rule, *cells[1:])]
    return "\n".join((title, "", *lines))


def milliseconds(seconds: float) -> str:
    """A duration as tables show it."""
    return f"{seconds * 1000:.2f}"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
    return f"| {' | '.join(padded)} |"
