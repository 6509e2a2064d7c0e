"""Work whose cost grows with its input: off the event loop where it would hold up everybody else's answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Parsing or tokenising that much takes about as long as handing it to a thread and back does.
INLINE_SIZE = 20_000
# Few: threads that compute hold the event loop up, and it waits for each of them in turn.
_workers = ThreadPoolExecutor(max_workers=2, thread_name_prefix="beside-the-loop")


async def beside_the_loop(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What work returns on an input of this many bytes or characters: small ones at once, large ones in a thread."""
    return work(*args, **kwargs) if size <= INLINE_SIZE else await in_a_thread(work, *args, **kwargs)


async def in_a_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What work returns. Cancelled before its turn has come, it is never begun; after that, it runs to its end."""
    return await asyncio.get_running_loop().run_in_executor(_workers, partial(work, *args, **kwargs))
