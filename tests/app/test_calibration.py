"""The calibration file: taken as a whole or refused with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.calibration import load_temperatures
from app.canvas.question import Kind
from app.settings import BadSettings


def written(folder: Path, content: Any) -> str:
    """A file with this content."""
    file = folder / "calibration.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(file)


def test_temperatures_by_kind(tmp_path: Path) -> None:
    """Kinds that are not named keep theirs; without a file all do."""
    file = written(tmp_path, {"model": "m", "temperatures": {"choice": 1.5, "boolean": 1}})
    assert load_temperatures(file, "m") == {Kind.CHOICE: 1.5, Kind.BOOLEAN: 1.0}
    assert load_temperatures(None, "m") == {}


REFUSED = {
    "not JSON": "{",
    "no object": [],
    "no temperatures": {"model": "m"},
    "an unknown field": {"model": "m", "temperatures": {}, "comment": "x"},
    "an unknown kind": {"model": "m", "temperatures": {"mood": 1.0}},
    "zero": {"model": "m", "temperatures": {"choice": 0}},
    "not a number": {"model": "m", "temperatures": {"choice": "1.0"}},
    "infinite": '{"model": "m", "temperatures": {"choice": Infinity}}',
    "another model's": {"model": "n", "temperatures": {"choice": 1.0}},
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED)
def test_refused(tmp_path: Path, content: Any) -> None:
    """The message names the setting."""
    with pytest.raises(BadSettings, match="DECIDE_CALIBRATION"):
        load_temperatures(written(tmp_path, content), "m")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="DECIDE_CALIBRATION"):
        load_temperatures(str(tmp_path / "none.json"), "m")
