"""What others build upon is as it was when it was last agreed on: a change shows in the commit that makes it."""

from __future__ import annotations

from tests.contract.snapshots import METRICS, OPENAPI, api, metrics


def test_the_api_is_what_was_agreed_on() -> None:
    """C2: routes, fields, statuses. After a change that is meant: see `tests.contract.snapshots`, and the changelog."""
    assert api() == OPENAPI.read_text()


def test_metrics_are_what_was_agreed_on() -> None:
    """C2: kinds, names and labels, for dashboards and alerts are built on them."""
    assert metrics() == METRICS.read_text()
