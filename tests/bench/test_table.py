"""Tables."""

from __future__ import annotations

from bench.table import milliseconds, render_table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [("188 tokens", 1, "12.50"), ("public", 1000, "3.10")]
    assert render_table("Latency", ("set", "reads", "ms"), rows).splitlines() == [
        "Latency",
        "",
        "| set        | reads |    ms |",
        "| :--------- | ----: | ----: |",
        "| 188 tokens |     1 | 12.50 |",
        "| public     |  1000 |  3.10 |",
    ]


def test_milliseconds() -> None:
    assert milliseconds(0.0123456) == "12.35"
