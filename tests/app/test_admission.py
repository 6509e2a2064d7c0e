"""Permits and budgets."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import pytest

from app.admission import Admission, Budget
from app.errors import Overloaded, QuotaExceeded
from app.tenant import Tenant

A, B = (Tenant(name=name, cache_salt=None) for name in "ab")


def test_never_more_than_max_inflight() -> None:
    """R1: the next one is refused, and taken as soon as one has left."""
    admission = Admission(2)
    with admission.permit():
        with admission.permit():
            assert admission.inflight == 2
            with pytest.raises(Overloaded), admission.permit():
                pass
            assert admission.inflight == 2
        with admission.permit():
            assert admission.inflight == 2
    assert admission.inflight == 0


def test_a_request_that_fails_gives_its_permit_back() -> None:
    """R16: whatever ends it, cancellation included."""
    admission = Admission(1)
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error), admission.permit():
            raise error
        assert admission.inflight == 0


def test_permits_may_be_given_back_in_any_order() -> None:
    """Requests end when they end."""
    admission = Admission(3)
    stacks = [ExitStack() for _ in range(3)]
    for stack in stacks:
        stack.enter_context(admission.permit())
    for left, stack in zip((2, 1, 0), (stacks[1], stacks[0], stacks[2]), strict=True):
        stack.close()
        assert admission.inflight == left


def test_one_tenant_cannot_take_every_permit() -> None:
    """R1: what is one tenant's share is refused to that tenant only; what nobody may have, to all."""
    admission = Admission(3, tenant_inflight=2)
    with admission.permit(A), admission.permit(A):
        with pytest.raises(QuotaExceeded):
            admission.require_room(A)
        with admission.permit(B):
            for tenant in (A, B):
                with pytest.raises(Overloaded):
                    admission.require_room(tenant)
    assert admission.inflight == 0
    admission.require_room(A)


def test_without_a_share_a_tenant_may_have_all() -> None:
    """The default: one tenant is no reason to keep permits back."""
    admission = Admission(2)
    with admission.permit(A), admission.permit(A), pytest.raises(Overloaded):
        admission.require_room(B)


async def test_idle_when_the_last_request_has_ended() -> None:
    """R8: what a stop waits for."""
    admission = Admission(2)
    await asyncio.wait_for(admission.until_idle(), 1)
    with admission.permit():
        with admission.permit():
            pass
        waiting = asyncio.create_task(admission.until_idle())
        await asyncio.sleep(0.01)
        assert not waiting.done()
    await asyncio.wait_for(waiting, 1)


def test_a_budget_is_kept_to() -> None:
    """R2: many small ones together are refused as one large one would be; each gives back what it took."""
    budget = Budget(10)
    with budget.account() as one, budget.account() as other:
        one.take(4)
        other.take(5)
        one.take(1)
        assert (budget.taken, budget.is_spent) == (10, True)
        with pytest.raises(Overloaded):
            other.take(1)
        assert budget.taken == 10
    assert (budget.taken, budget.is_spent) == (0, False)


def test_one_alone_may_have_more_than_there_is() -> None:
    """R2: otherwise the largest request would be refused for ever; nobody comes in beside it."""
    budget = Budget(10)
    with budget.account() as one:
        one.take(6)
        one.take(6)
        assert budget.taken == 12
        with pytest.raises(Overloaded), budget.account() as other:
            other.take(1)
    assert budget.taken == 0


def test_who_was_let_in_may_need_more() -> None:
    """R2: the rounds of a decision: it is not cut off for them, but newcomers are turned away."""
    budget = Budget(10)
    with budget.account() as one, budget.account() as other:
        one.take(4)
        other.take(4)
        one.hold(9)
        assert (budget.taken, budget.is_spent) == (13, True)
        with pytest.raises(Overloaded), budget.account() as newcomer:
            newcomer.take(1)
        one.hold(2)
        assert budget.taken == 6
    assert budget.taken == 0


def test_each_tenant_has_its_share_of_arriving_bytes() -> None:
    """S10: bodies that one never finishes keep nobody else's out."""
    admission = Admission(10, tenants=2, max_bytes=100)
    with admission.arriving_bytes(A).account() as one:
        one.take(50)
        with pytest.raises(Overloaded), admission.arriving_bytes(A).account() as more:
            more.take(1)
        with admission.arriving_bytes(B).account() as other:
            other.take(50)
    assert admission.arriving_bytes(A).taken == admission.arriving_bytes(B).taken == 0


def test_no_permit_while_the_tokens_are_spent() -> None:
    """R2: known before a body is looked at."""
    admission = Admission(10, max_tokens=100)
    with admission.tokens.account() as account:
        account.take(99)
        admission.require_room()
        account.take(1)
        with pytest.raises(Overloaded), admission.permit():
            pass
    admission.require_room()
