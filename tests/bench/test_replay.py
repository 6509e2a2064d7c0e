"""Replaying a log: flips, differences, tests."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.settings import Settings
from bench import record as record_command
from bench import replay as replay_command
from bench.__main__ import make_parser
from bench.decision_log import Entry, read_log, write_log
from bench.public_cases import load_public_cases
from bench.replay import Change, changes, report
from engine.fake import FakeEngine
from tests.cases import REFILL, TOPIC, rubric


@pytest.fixture
def settings() -> Settings:
    """Room for the clients that commands bring."""
    return Settings(engine="fake", max_reads=1)


def answer(value: Any, outcome: str = "decided", **probabilities: float) -> dict[str, Any]:
    """A member of `answers`."""
    return {"value": value, "outcome": outcome, "probabilities": probabilities}


def change(before: dict[str, Any], after: dict[str, Any], *expected: Any) -> Change:
    """A question, in the log and now."""
    return Change(line=1, question="q", before=before, after=after, expected=expected)


def test_a_flip_is_another_value() -> None:
    """Lists in another order are not, and true is not 1."""
    assert change(answer("a"), answer("b")).is_flip
    assert change(answer(True), answer(1)).is_flip
    assert not change(answer(["a", "b"]), answer(["b", "a"])).is_flip


def test_a_probability_flips_when_it_crosses_the_middle() -> None:
    """Its value is a number that is never quite the same; what is expected of it is yes or no."""
    before = answer(0.25, true=0.25, false=0.75)
    assert not change(before, answer(0.2500001, true=0.2500001, false=0.7499999)).is_flip
    assert change(before, answer(0.75, true=0.75, false=0.25), False).is_flip
    assert change(before, answer(0.75, true=0.75, false=0.25), False).was_and_is_right() == (True, False)


def test_the_largest_difference() -> None:
    """Of any option; other options are no replay."""
    assert change(answer("a", a=0.9, b=0.1), answer("a", a=0.7, b=0.3)).difference == pytest.approx(0.2)
    with pytest.raises(ValueError, match="others now"):
        _ = change(answer("a", a=0.9), answer("a", b=0.9)).difference


def test_a_report() -> None:
    """How many flips, which, how far probabilities are apart, and whether one direction is more than chance."""
    right_before = [change(answer("a", a=0.9, b=0.1), answer("b", "uncertain", a=0.4, b=0.6), "a")] * 6
    same = [change(answer("a", a=0.9, b=0.1), answer("a", a=0.9, b=0.1), "a")] * 6
    text = report([*right_before, *same], "another fingerprint")
    assert "another fingerprint" in text
    rows = {
        line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]]
        for line in text.splitlines()
        if "|" in line
    }
    assert rows["12"][0] == "6"
    assert rows["12"][-1] == "5.00e-01"
    assert rows["being decided"] == ["6", "0", "0.031"]
    assert rows["being right"] == ["6", "0", "0.031"]


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    """And one that is none is refused, with the line."""
    file = tmp_path / "log.jsonl"
    entries = [Entry(request={"state": "ä"}, response={"answers": {}})] * 2
    write_log(file, entries)
    assert read_log(file) == entries
    file.write_text(file.read_text() + '{"request": {}, "response": {}, "at": "noon"}\n')
    assert len(read_log(file)) == 3
    file.write_text(file.read_text() + "{}\n")
    with pytest.raises(ValueError, match="line 4"):
        read_log(file)


async def test_a_replay_on_the_same_server_flips_nothing(
    client: httpx.AsyncClient, fake: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recorded from the public cases, asked again: the same fingerprint, no flip, no difference. On another, flips."""
    monkeypatch.setattr(record_command, "load_public_cases", lambda: load_public_cases()[:5])
    for module in (record_command, replay_command):
        monkeypatch.setattr(module, "connect", lambda _: nullcontext(client))
    log = ["--log", str(tmp_path / "log.jsonl")]
    said = await record_command.record(make_parser().parse_args(["record", *log]))
    assert "5 decisions" in said
    table = await replay_command.replay(make_parser().parse_args(["replay", *log]))
    assert "the same fingerprint" in table
    assert "Flips\n" not in table
    assert "0.00e+00" in table
    fake.logprobs = lambda _request, _branch, slot: (-0.01, *[-5.0] * (len(slot.label_token_ids) - 1))
    assert "Flips\n" in await replay_command.replay(make_parser().parse_args(["replay", *log]))


def test_what_was_expected_counts() -> None:
    """Where the log says it."""
    request = {"state": "x", "rubric": rubric(topic=TOPIC, refill=REFILL)}
    before = {"answers": {"topic": answer("billing"), "refill": answer(True)}, "fingerprint": "f"}
    after = {"answers": {"topic": answer("pharmacy"), "refill": answer(True)}, "fingerprint": "f"}
    entry = Entry(request=request, response=before, expected={"topic": "pharmacy"})
    first, second = changes([entry], [after])
    assert (first.was_and_is_right(), first.expected) == ((False, True), ("pharmacy",))
    assert second.expected == ()
