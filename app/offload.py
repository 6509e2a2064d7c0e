"""Work whose cost grows with its input: off the event loop where it would hold up everybody else's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Parsing or tokenising that much takes about as long as handing it to a thread and back does.
INLINE_SIZE = 20_000


async def beside_the_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What work returns on an input of this many bytes or characters: small ones at once, large ones in a thread."""
    if size <= INLINE_SIZE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
