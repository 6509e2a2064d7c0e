"""McNemar's exact test against tables."""

from __future__ import annotations

import pytest

from bench.mcnemar import Discordant


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 0.0625),
        (0, 6, 0.03125),
        (3, 3, 1.0),
        (2, 10, 0.03857421875),
        (10, 2, 0.0385742),
        (600, 500, 0.0028195),
    ],
)
def test_p_values(lost: int, gained: int, p: float) -> None:
    """Twice the binomial tail, never more than 1; which direction is which does not matter."""
    assert Discordant(lost, gained).p_value == pytest.approx(p, rel=1e-3)
