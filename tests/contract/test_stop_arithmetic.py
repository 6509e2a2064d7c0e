"""How long a stop takes: what operators are told is what the program does."""

from __future__ import annotations

import re
from pathlib import Path

from app.server import SENDING_SECONDS, stop_times
from app.settings import Settings
from engine.vllm_engine import STOP_SECONDS

PAGE = Path(__file__).parent.parent.parent / "docs" / "behaviour.md"


def test_the_page_adds_up_what_the_program_does() -> None:
    """R10: the grace period that it asks for is the sum of every step's longest."""
    (stated,) = re.findall(r"at most ([\d+ ]+) = (\d+) s with the defaults", PAGE.read_text())
    times = stop_times(Settings())
    # The engine's processes are asked to end, and then killed.
    steps = (times.delay_seconds, times.drain_seconds, SENDING_SECONDS, 2 * STOP_SECONDS)
    assert [int(step) for step in stated[0].split(" + ")] == list(steps)
    assert int(stated[1]) == sum(steps)
