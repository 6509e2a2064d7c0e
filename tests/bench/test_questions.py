"""What more questions cost: the bodies, and the table of a service."""

from __future__ import annotations

from contextlib import nullcontext

import httpx
import pytest

from bench import questions
from bench.questions import COUNTS, body, measure_questions


def test_the_states_of_a_turn_are_new_and_alike() -> None:
    """The same about every rubric of a turn; another one next turn, and another where the first is asked again."""
    assert body(1, 7)["state"] == body(16, 7)["state"]
    assert len({body(1, number)["state"] for number in range(100)}) == 100


@pytest.mark.parametrize("count", COUNTS)
def test_so_many_questions(count: int) -> None:
    assert len(body(count, 0)["rubric"]["properties"]) == count


async def test_the_table(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row per number of questions, and the noise in the last."""
    monkeypatch.setattr(questions, "TURNS", 4)
    monkeypatch.setattr(questions, "connect", lambda _: nullcontext(client))
    table = await measure_questions("http://onestep")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("|")][2:]
    assert [row[0] for row in rows] == ["1", "8", "14", "16", "40", "64", "1, again"]
    assert [row[2] for row in rows] == ["1", "1", "1", "2", "4", "6", "1"]
    assert {row[3] for row in rows} == {"1"}
    assert rows[0][-1] == "1.000 [1.000, 1.000]"
