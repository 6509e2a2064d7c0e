"""Requests whose answers are known, as an engine reads them: for measurements without the service around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from app.canvas.decision import decide
from app.canvas.plan import Layout, Order, Plan, Planner
from app.canvas.prompt import state_text
from app.decisions import read_request
from bench.demo.answered import as_meaning
from bench.demo.labelled import Labelled
from engine.protocol import ReadRequest

# Labels of one letter; the longer ones only serve rubrics with more options than there are letters.
LETTERS = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """A request whose answers are known, as an engine reads it."""

    labelled: Labelled
    plan: Plan
    read: ReadRequest

    @classmethod
    def of(cls, planner: Planner, labelled: Labelled) -> PlannedRequest:
        """Laid out as the service does."""
        policy = labelled.body.get("policy", {})
        layout, order = policy.get("layout", Layout.JOINT), policy.get("order", Order.RUBRIC_FIRST)
        plan = planner.plan(labelled.body["rubric"], layout=Layout(layout), order=Order(order))
        seeded = planner.seed_read(plan, state_text(labelled.body["state"]), seed=None)
        return cls(labelled=labelled, plan=plan, read=read_request(plan, seeded))

    def values(self, branch_logprobs: Sequence[Sequence[Sequence[float]]]) -> list[object]:
        """What is decided of the questions that are looked at."""
        decision, _ = decide(self.plan.rubric, self.plan.collect(branch_logprobs), entropy_threshold=1.0)
        return [as_meaning(decision[name]) for name in self.labelled.expected]

    @property
    def expected(self) -> list[object]:
        """What would be right."""
        return [as_meaning(value) for value in self.labelled.expected.values()]


def relabelled(planner: Planner, random: Random) -> Planner:
    """The planner with its one-letter labels in another order."""
    letters = random.sample(planner.alphabet[:LETTERS], LETTERS)
    made = replace(planner)
    # A cached property of a frozen dataclass: what is found in the tokenizer is set instead.
    made.__dict__.update(alphabet=(*letters, *planner.alphabet[LETTERS:]), limits=planner.limits)
    return made
