"""The public cases as reads, laid out as the service lays a request out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from app.canvas.errors import PromptTooLong
from app.canvas.plan import Plan, Planner
from app.decisions import read_request
from bench.public_cases import PublicCase
from engine.protocol import ReadRequest


@dataclass(frozen=True)
class PublicReads:
    """One read per public case. Implements `bench.read_set.ReadSet`.

    A case that exceeds the context loses the end of its state, as few characters as will do.
    """

    planner: Planner
    cases: tuple[PublicCase, ...]

    @property
    def name(self) -> str:
        """What tables call it."""
        return "public"

    @property
    def size(self) -> int:
        """How many cases there are."""
        return len(self.cases)

    def read(self, number: int, variation: int) -> ReadRequest:
        """A case behind instructions of its own: they lead the prompt, so nothing behind them can be in the cache."""
        case = self.cases[number]
        plan = self.planner.plan(case.rubric, instructions(number, variation))
        seeded = self.planner.seed_read(plan, fitting_state(self.planner, plan, case.state), seed=None)
        return replace(read_request(plan, seeded), request_id=f"public-{number}-{variation}")

    def count_cut(self) -> int:
        """How many cases lose some of their state."""
        plans = ((case, self.planner.plan(case.rubric, instructions(0, 0))) for case in self.cases)
        return sum(fitting_state(self.planner, plan, case.state) != case.state for case, plan in plans)


def instructions(number: int, variation: int) -> str:
    """New for every variation of every case, and always of the same length: tokenizers may know numbers by heart."""
    return f"Reading {' '.join(f'{variation:03}{number:03}')}."


def fitting_state(planner: Planner, plan: Plan, state: str) -> str:
    """The state, or as much of its beginning as fits the context."""

    def fits(text: str) -> bool:
        try:
            planner.seed_read(plan, text, seed=0)
        except PromptTooLong:
            return False
        return True

    return state if fits(state) else state[: largest_fitting(len(state), lambda length: fits(state[:length]))]


def largest_fitting(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 0 to `limit` that fits, where 0 does and so does everything below what fits."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
