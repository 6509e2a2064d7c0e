"""McNemar's test: did pairs change in one direction more than chance would have it?"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb


@dataclass(frozen=True, slots=True)
class Discordant:
    """Pairs that changed.

    Attributes:
        lost, gained: in one direction, and in the other.
    """

    lost: int
    gained: int

    @property
    def p_value(self) -> float:
        """Two-sided and exact: a binomial test of 1/2 (McNemar 1947, the exact form); 1 where nothing changed."""
        changed = self.lost + self.gained
        tail = sum(comb(changed, count) for count in range(min(self.lost, self.gained) + 1))
        return min(1.0, 2 * tail / (1 << changed))
