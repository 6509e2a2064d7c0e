"""How much is sent."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def fuzz_requests(pytestconfig: pytest.Config) -> int:
    """Requests of each kind of fuzzing."""
    count: int = pytestconfig.getoption("--fuzz-requests")
    return count
