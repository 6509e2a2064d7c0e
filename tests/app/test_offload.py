"""Where work is done."""

from __future__ import annotations

import threading

import pytest

from app.offload import INLINE_SIZE, beside_the_loop


@pytest.mark.parametrize(("size", "is_here"), [(0, True), (INLINE_SIZE, True), (INLINE_SIZE + 1, False)])
async def test_large_work_goes_to_a_thread(size: int, is_here: bool) -> None:
    """At the limit still at once, one more is done elsewhere."""
    worker = await beside_the_loop(size, threading.current_thread)
    assert (worker is threading.current_thread()) is is_here


async def test_arguments_results_and_errors_pass_through() -> None:
    """The same on either side of the limit."""
    for size in (1, INLINE_SIZE + 1):
        assert await beside_the_loop(size, divmod, 7, 2) == (3, 1)
        assert await beside_the_loop(size, int, "11", base=2) == 3
        with pytest.raises(ZeroDivisionError):
            await beside_the_loop(size, divmod, 1, 0)
