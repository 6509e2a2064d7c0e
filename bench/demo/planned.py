"""Requests whose answers are known, as an engine reads them: for measurements without the service around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random

from app.canvas.plan import Layout, Order, Plan, Planner
from app.canvas.policy import Inquiry, Policy
from app.canvas.prompt import state_text
from app.decisions import read_request
from bench.demo.labelled import Labelled
from bench.meaning import meaning
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
        policy = Policy(entropy_threshold=1.0, max_reads=1)
        read = self.plan.collect(self.plan.branches, branch_logprobs)
        inquiry = Inquiry(rubric=self.plan.rubric, policy=policy, seed=0)
        decision = inquiry.observe([read], round_seconds=0.0, remaining_seconds=0.0).decision
        return [meaning(decision[name]) for name in self.labelled.expected]

    @property
    def expected(self) -> list[object]:
        """What would be right."""
        return [meaning(value) for value in self.labelled.expected.values()]


def relabelled(planner: Planner, random: Random) -> Planner:
    """The planner with its one-letter labels in another order."""
    letters = random.sample(planner.alphabet[:LETTERS], LETTERS)
    made = replace(planner)
    # A cached property of a frozen dataclass: what is found in the tokenizer is set instead.
    made.__dict__.update(alphabet=(*letters, *planner.alphabet[LETTERS:]), limits=planner.limits)
    return made
