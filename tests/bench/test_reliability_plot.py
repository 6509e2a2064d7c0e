"""The picture of a calibration."""

from __future__ import annotations

import struct
from pathlib import Path

from bench.reliability import reliability
from bench.reliability_plot import plot_reliability


def test_a_picture(tmp_path: Path) -> None:
    """A PNG of a readable size, another one for other answers."""
    good = reliability([0.6, 0.9, 0.95], [True, True, True])
    bad = reliability([0.6, 0.9, 0.95], [False, True, False])
    for name, bins in (("good", good), ("bad", bad)):
        plot_reliability({"all": bins}, tmp_path / f"{name}.png")
    images = [(tmp_path / f"{name}.png").read_bytes() for name in ("good", "bad")]
    assert images[0] != images[1]
    for image in images:
        assert image.startswith(b"\x89PNG\r\n\x1a\n")
        assert struct.unpack(">II", image[16:24]) == (500, 600)
