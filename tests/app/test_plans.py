"""Compiled rubrics are kept."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from app.canvas.errors import RubricRejected
from app.canvas.plan import Layout, Order, Plan, Planner
from app.plans import NODES_PER_ENTRY, PlanRequest, Plans
from app.tenant import Tenant
from tests.cases import REFILL, TOPIC, rubric

ASKED = PlanRequest(rubric=rubric(topic=TOPIC, refill=REFILL), instructions="Be strict.")


class CountingPlanner(Planner):
    """Counts what it compiles."""

    compiled = 0

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        type(self).compiled += 1
        return super().plan(*args, **kwargs)


@pytest.fixture
def counting(planner: Planner) -> CountingPlanner:
    """A planner that has compiled nothing yet."""
    CountingPlanner.compiled = 0
    return CountingPlanner(**{one.name: getattr(planner, one.name) for one in fields(planner)})


async def test_a_rubric_is_compiled_once(counting: CountingPlanner) -> None:
    """Equal requests share one plan, however often they come."""
    plans = Plans(counting, 8)
    first = await plans.plan(ASKED)
    again = await plans.plan(replace(ASKED, rubric=rubric(topic=TOPIC, refill=REFILL)))
    assert first is again
    assert counting.compiled == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"rubric": rubric(topic=TOPIC)},
        {"instructions": None},
        {"instructions": "Be lenient."},
        {"layout": Layout.SPLIT},
        {"layout": Layout.ISOLATED},
        {"order": Order.STATE_FIRST},
        {"tenant": Tenant(name="a", cache_salt="0")},
    ],
    ids=str,
)
async def test_whatever_moves_a_token_is_another_plan(counting: CountingPlanner, changed: dict[str, Any]) -> None:
    """Rubric, instructions, layout and order each are part of the key, and S3: so is whose it is."""
    plans = Plans(counting, 8)
    await plans.plan(ASKED)
    other = await plans.plan(replace(ASKED, **changed))
    assert counting.compiled == 2
    assert other == counting.plan(
        **{"schema": ASKED.rubric, "instructions": ASKED.instructions, **_as_arguments(changed)}
    )


async def test_true_is_not_one(counting: CountingPlanner) -> None:
    """Values that Python calls equal are other rubrics: their decisions differ."""
    plans = Plans(counting, 8)
    numbers = await plans.plan(PlanRequest(rubric=rubric(a={"enum": [1, 0]})))
    booleans = await plans.plan(PlanRequest(rubric=rubric(a={"enum": [True, False]})))
    assert [option.key for option in numbers.questions[0].options] == ["1", "0"]
    assert [option.key for option in booleans.questions[0].options] == ["true", "false"]


async def test_the_oldest_is_forgotten(counting: CountingPlanner) -> None:
    """No more are kept than there is room for."""
    plans = Plans(counting, 1)
    for asked in (ASKED, replace(ASKED, instructions=None), ASKED):
        await plans.plan(asked)
    assert counting.compiled == 3


async def test_a_large_rubric_takes_more_room(counting: CountingPlanner) -> None:
    """S12: what is kept is bounded by how large it is; one that is larger than all there is is kept alone."""
    large = PlanRequest(rubric=rubric(**{f"q{n}": {"enum": list(range(10))} for n in range(2 * NODES_PER_ENTRY // 10)}))
    plans = Plans(counting, 4)
    for asked in (ASKED, large, ASKED):
        await plans.plan(asked)
    assert counting.compiled == 2
    for instructions in ("a", "b"):
        await plans.plan(replace(ASKED, instructions=instructions))
    assert counting.compiled == 4
    await plans.plan(large)
    assert counting.compiled == 5
    alone = Plans(counting, 1)
    for _ in range(2):
        await alone.plan(large)
    assert counting.compiled == 6


async def test_a_refused_rubric_is_not_kept(counting: CountingPlanner) -> None:
    """It is refused again."""
    plans = Plans(counting, 8)
    for _ in range(2):
        with pytest.raises(RubricRejected):
            await plans.plan(PlanRequest(rubric={}))
    assert counting.compiled == 2


async def test_a_state_is_laid_out_under_a_plan(counting: CountingPlanner) -> None:
    """As the planner does it."""
    plans = Plans(counting, 8)
    plan = await plans.plan(ASKED)
    assert await plans.prompt(plan, {"age": 61}) == counting.prompt(plan, '{"age": 61}')


def _as_arguments(changed: dict[str, Any]) -> dict[str, Any]:
    return {("schema" if name == "rubric" else name): value for name, value in changed.items() if name != "tenant"}
