"""How much is sent."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings


@pytest.fixture(scope="session")
def fuzzing(pytestconfig: pytest.Config) -> settings:
    """So many requests of each kind, the same ones on every run and every machine."""
    count: int = pytestconfig.getoption("--fuzz-requests")
    return settings(max_examples=count, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
