"""Reliability as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.reliability import Bin, calibration_error


def plot_reliability(series: dict[str, Sequence[Bin]], file: Path) -> None:
    """Write a PNG: accuracy over mean probability of each series, and below it how many answers each bin holds.

    Args:
        series: bins by the name in the legend.
        file: its ending says the format.
    """
    figure = Figure(figsize=(5, 6), layout="constrained")
    upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 1))
    upper.plot((0, 1), (0, 1), color="grey", linestyle="dotted", label="as often right as it says")
    for name, bins in series.items():
        label = f"{name}: calibration error {calibration_error(bins):.3f}"
        at = [one.confidence for one in bins]
        upper.plot(at, [one.accuracy for one in bins], marker="o", label=label)
        lower.plot(at, [one.count for one in bins], marker="o")
    upper.set(ylabel="accuracy", xlim=(0, 1), ylim=(0, 1))
    upper.legend()
    lower.set(xlabel="probability of the answer", ylabel="answers", yscale="log")
    figure.savefig(file, dpi=100)
