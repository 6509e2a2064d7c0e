"""An engine whose reads are watched, so that one which neither dies nor answers is found out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.protocol import Engine, EngineInfo, ReadRequest, ReadResult


@dataclass(kw_only=True)
class WatchedEngine:
    """Another engine, and since when it owes an answer. Implements `engine.protocol.Engine`.

    Attributes:
        clock: seconds, of which only differences count.
    """

    engine: Engine
    clock: Callable[[], float] = time.monotonic
    _owing_since: float | None = field(default=None, init=False)
    _under_way: int = field(default=0, init=False)

    @property
    def silent_seconds(self) -> float:
        """For how long reads have been asked for and none has been answered.

        One that its caller gave up still counts: it was not answered.
        """
        return 0.0 if self._owing_since is None else self.clock() - self._owing_since

    async def start(self) -> EngineInfo:
        """Start it."""
        return await self.engine.start()

    async def read(self, request: ReadRequest) -> ReadResult:
        """Read. Any end but being given up is an answer."""
        if self._owing_since is None:
            self._owing_since = self.clock()
        self._under_way += 1
        try:
            result = await self.engine.read(request)
        except asyncio.CancelledError:
            self._under_way -= 1
            raise
        except Exception:
            self._answered()
            raise
        self._answered()
        return result

    async def check(self) -> None:
        """Ask it."""
        await self.engine.check()

    async def close(self) -> None:
        """Close it."""
        await self.engine.close()

    def _answered(self) -> None:
        self._under_way -= 1
        self._owing_since = self.clock() if self._under_way else None
