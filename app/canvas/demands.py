"""What an answer has to be to be decided, as its property says, and what stands in the decision if it is not."""

from __future__ import annotations

from dataclasses import dataclass

from app.canvas.json import Json
from app.canvas.keyword import ENTROPY_THRESHOLD, MIN_PROBABILITY
from app.canvas.site import Reader, Site


class NotAnOption(ValueError):
    """A question is never answered so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """Of one question.

    Attributes:
        entropy_threshold: the highest entropy of an answer that is decided; None: the policy's.
        min_probability: the lowest probability of one.
        stand_in: holds what the decision holds instead of an uncertain answer; empty: the answer all the same.
    """

    entropy_threshold: float | None = None
    min_probability: float = 0.0
    stand_in: tuple[Json, ...] = ()

    def threshold(self, usual: float) -> float:
        """The entropy threshold that holds here."""
        return usual if self.entropy_threshold is None else self.entropy_threshold

    def are_met(self, entropy: float, probability: float, usual_threshold: float) -> bool:
        """Whether an answer is decided."""
        return entropy <= self.threshold(usual_threshold) and probability >= self.min_probability


NO_DEMANDS = Demands()


def read_demands(site: Site, reader: Reader) -> Demands:
    """What a schema says of them, but for the stand-in. Complains about what is out of range."""
    return Demands(
        entropy_threshold=_share(site, reader, ENTROPY_THRESHOLD),
        min_probability=_share(site, reader, MIN_PROBABILITY) or 0.0,
    )


def _share(site: Site, reader: Reader, keyword: str) -> float | None:
    if not site.has(keyword):
        return None
    value = reader.use(site, keyword)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        reader.complain(site.at(keyword), "bad_demand", "must be a number from 0 to 1")
        return None
    return float(value)
