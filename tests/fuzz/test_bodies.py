"""Bodies of every kind, sent to the service as its users run it."""

from __future__ import annotations

from collections import Counter

import httpx
import pytest
from hypothesis import given, settings

from tests.fuzz.asked import Asked, all_asked
from tests.fuzz.promised import assert_at_rest, assert_goes_on, assert_promised
from tests.server import ServerProcess

pytestmark = pytest.mark.engine


def test_any_request_is_answered_as_promised(real_server: ServerProcess, fuzzing: settings) -> None:
    """S6, C1: no status that is not promised, and the next good request succeeds, after every single one."""
    statuses: Counter[int] = Counter()
    with httpx.Client(base_url=real_server.url, timeout=60) as client:

        @fuzzing
        @given(all_asked())
        def ask(asked: Asked) -> None:
            response = client.post(asked.path, content=asked.body, headers=dict(asked.headers))
            assert_promised(response)
            statuses[response.status_code] += 1
            assert_goes_on(client)

        ask()
    assert_at_rest(real_server)
    # It goes all the way in often enough, and comes back from each of the ways out.
    assert statuses[200] > sum(statuses.values()) / 10
    assert statuses.keys() >= {200, 400, 415, 422}
