"""How many requests are served at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import Overloaded


class Admission:
    """Permits for requests: never more than `max_inflight` out, none waits."""

    def __init__(self, max_inflight: int) -> None:
        self.max_inflight = max_inflight
        self.inflight = 0

    @contextmanager
    def permit(self) -> Iterator[None]:
        """Hold a permit for the length of a request.

        Raises:
            Overloaded: none is left.
        """
        if self.inflight >= self.max_inflight:
            raise Overloaded
        self.inflight += 1
        try:
            yield
        finally:
            self.inflight -= 1
