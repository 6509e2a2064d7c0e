"""Errors to answers: the status rule, and the envelope that is nobody else's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import Request

from app.canvas.errors import CanvasError
from app.errors import MalformedBody, RequestRejected, ServiceError
from app.metrics import Metrics
from app.problems import RETRY_AFTER_SECONDS, TABLE, ProblemHandler, answer_problem, row_of
from engine.protocol import EngineDied, EngineError
from tests.app.canary import CANARY
from tests.app.problem_cases import CASES, OTHER_CASES, ProblemCase, subclasses

REQUEST = Request({"type": "http", "headers": [], "onestep.request_id": "req_1"})


def test_every_error_has_a_row() -> None:
    """C1: whatever can be raised is in the table, and in the cases below."""
    every = {kind for base in (ServiceError, CanvasError, EngineError) for kind in subclasses(base)}
    raised = {kind for kind in every if not subclasses(kind)}
    assert raised == TABLE.keys() == {type(case.error) for case in CASES}


def test_an_error_gets_the_row_of_the_nearest_kind_above() -> None:
    """A refinement of an error is answered as that error."""

    class Refined(MalformedBody):
        pass

    assert row_of(Refined()) is TABLE[MalformedBody]
    assert row_of(RequestRejected()).code == "internal"


@pytest.mark.parametrize("case", [*CASES, *OTHER_CASES], ids=lambda case: case.id)
def test_the_status_rule(case: ProblemCase) -> None:
    """C1: status, code, problems, and whether to come back, for every error."""
    response = answer_problem(REQUEST, case.error)
    document = json.loads(bytes(response.body))
    assert response.media_type == response.headers["content-type"] == "application/problem+json"
    assert response.status_code == document["status"] == case.status
    assert document == {
        "type": f"urn:onestep:problem:{case.code}",
        "title": row_of(case.error).title,
        "status": case.status,
        "detail": row_of(case.error).detail,
        "instance": "urn:onestep:request:req_1",
        "errors": [{"pointer": p.pointer, "code": p.code, "message": p.message} for p in case.problems],
    }
    assert ("retry-after" in response.headers) is case.may_retry


@pytest.mark.parametrize("case", [*CASES, *OTHER_CASES], ids=lambda case: case.id)
def test_an_exceptions_own_text_is_never_answered(case: ProblemCase) -> None:
    """P1: it may quote a request."""
    response = answer_problem(REQUEST, case.error)
    assert CANARY not in bytes(response.body).decode() + str(response.headers)


def test_retry_after_is_jittered() -> None:
    """R1: callers turned away together do not come back together."""
    (overloaded,) = (case.error for case in CASES if case.code == "overloaded")
    low, high = RETRY_AFTER_SECONDS
    waits = {int(answer_problem(REQUEST, overloaded).headers["retry-after"]) for _ in range(200)}
    assert waits == set(range(low, high + 1))


def test_headers_of_the_framework_are_kept() -> None:
    """A 405 says which methods there are."""
    (error,) = (case.error for case in OTHER_CASES if case.status == 405)
    assert answer_problem(REQUEST, error).headers["allow"] == "POST"


async def handle(error: Exception) -> Metrics:
    """Have an error answered, and return what was counted."""
    metrics = Metrics()
    response = await ProblemHandler(metrics)(REQUEST, error)
    assert response.status_code == row_of(error).status
    return metrics


@pytest.mark.parametrize("case", [*CASES, *OTHER_CASES], ids=lambda case: case.id)
async def test_what_is_our_fault_is_logged(case: ProblemCase, lines: list[dict[str, Any]]) -> None:
    """P1: bugs and a dying engine, by type alone; what callers do wrong fills no log."""
    await handle(case.error)
    is_our_fault = case.code == "internal" or isinstance(case.error, EngineDied)
    assert [line["event"] for line in lines] == ["request failed"] * is_our_fault
    assert CANARY not in str(lines)
    assert all((line["error"], line["request_id"]) == (case.id, "req_1") for line in lines)


@pytest.mark.parametrize("case", [*CASES, *OTHER_CASES], ids=lambda case: case.id)
async def test_what_is_turned_away_is_counted(case: ProblemCase) -> None:
    """By code: what was refused before it was worked on, not what failed later, nor what no route took."""
    metrics = await handle(case.error)
    failed_later = ("internal", "deadline_exceeded", "not_found", "method_not_allowed")
    is_turned_away = case.code not in failed_later and not isinstance(case.error, EngineDied)
    counted = metrics.registry.get_sample_value("decide_rejected_total", {"reason": case.code})
    assert counted == (1 if is_turned_away else None)
