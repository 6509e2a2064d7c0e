"""How much is served at once: requests, requests of one tenant, tokens to be read, bytes of bodies that arrive.

Nothing waits for its turn here. What is more than allowed is turned away at once, with a status that says that this
replica is healthy, for a queue that nobody bounds grows until everything in it is too late (vllm-project/vllm#18826).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Overloaded, QuotaExceeded
from app.tenant import ANYBODY, Tenant

UNBOUNDED = 1 << 62


class Budget:
    """So much of something, of which parts are taken and given back."""

    def __init__(self, limit: int = UNBOUNDED) -> None:
        self.limit, self.taken = limit, 0

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.taken >= self.limit

    @contextmanager
    def account(self) -> Iterator[Account]:
        """What one request has of it, for the length of the context."""
        account = Account(self)
        try:
            yield account
        finally:
            account.hold(0)


class Account:
    """What one request has of a budget.

    Attributes:
        amount: that it has now.
    """

    def __init__(self, budget: Budget) -> None:
        self.amount = 0
        self._budget = budget

    def take(self, more: int) -> None:
        """Have so much more. While nobody else has anything, that may be more than there is.

        Raises:
            Overloaded: there is not as much left.
        """
        budget = self._budget
        if budget.taken > self.amount and budget.taken + more > budget.limit:
            raise Overloaded
        self.hold(self.amount + more)

    def hold(self, amount: int) -> None:
        """Have exactly so much, as a request does that was let in and needs it; newcomers are turned away for it."""
        self._budget.taken += amount - self.amount
        self.amount = amount


class Admission:
    """Permits for requests, and what they may use.

    Attributes:
        tokens: that reads of requests under way have, prompts and canvases together.
    """

    def __init__(
        self,
        max_inflight: int,
        *,
        tenants: int = 1,
        tenant_inflight: int | None = None,
        max_tokens: int = UNBOUNDED,
        max_bytes: int = UNBOUNDED,
    ) -> None:
        self.max_inflight = max_inflight
        self.tenant_inflight = max_inflight if tenant_inflight is None else tenant_inflight
        self.tokens = Budget(max_tokens)
        self._tenant_bytes = max_bytes // tenants
        self._bytes: dict[str, Budget] = {}
        self._inflight: Counter[str] = Counter()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def inflight(self) -> int:
        """Requests under way."""
        return self._inflight.total()

    def arriving_bytes(self, tenant: Tenant = ANYBODY) -> Budget:
        """Of a tenant's bodies that have arrived, in whole or in part, and are not understood yet.

        Each tenant has its own, or one could keep everybody else's bodies out without finishing any of its own.
        """
        return self._bytes.setdefault(tenant.name, Budget(self._tenant_bytes))

    def require_room(self, tenant: Tenant = ANYBODY) -> None:
        """Raise unless another request of this tenant would get a permit now: known before its body is looked at.

        Raises:
            Overloaded: no permit is left, or reads under way have all the tokens.
            QuotaExceeded: the tenant has as many as one may.
        """
        if self.inflight >= self.max_inflight or self.tokens.is_spent:
            raise Overloaded
        if self._inflight[tenant.name] >= self.tenant_inflight:
            raise QuotaExceeded

    @contextmanager
    def permit(self, tenant: Tenant = ANYBODY) -> Iterator[None]:
        """Hold a permit for the length of a request.

        Raises:
            Overloaded, QuotaExceeded: see `require_room`.
        """
        self.require_room(tenant)
        self._inflight[tenant.name] += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._inflight[tenant.name] -= 1
            if not self.inflight:
                self._idle.set()

    async def until_idle(self) -> None:
        """Wait until no request is under way."""
        await self._idle.wait()
