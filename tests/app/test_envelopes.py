"""In whose words refusals are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.requests import Request

from app.canvas.errors import Problem
from app.envelopes import (
    ENVELOPES,
    OPENAI,
    OPENAI_WORDS,
    PROBLEM_DOCUMENT,
    SYSTEM_ONE,
    SYSTEM_ONE_WORDS,
    TOLD_PROBLEMS,
    envelope_of,
)
from app.errors import NoKey, NotOffered, SchemaRejected, UnknownKey
from app.problems import HTTP_ROWS, TABLE, answer_problem
from tests.app.canary import CANARY
from tests.app.problem_cases import CASES, OTHER_CASES, ProblemCase

CODES = {row.code for row in (*TABLE.values(), *HTTP_ROWS.values())}


def answered(path: str, error: Exception) -> tuple[int, Any, dict[str, str]]:
    """Status, body and headers of the answer to an error on a path."""
    request = Request({"type": "http", "path": path, "headers": [], "onestep.request_id": "req_1"})
    response = answer_problem(request, error)
    return response.status_code, json.loads(bytes(response.body)), dict(response.headers)


def rejected(*places: str) -> SchemaRejected:
    """A body that is wrong at these places."""
    return SchemaRejected(*(Problem(pointer=place, code="bad", message="must be good") for place in places))


def test_every_code_has_words() -> None:
    """C1: no protocol is at a loss, and none has words for what cannot happen."""
    assert SYSTEM_ONE_WORDS.keys() == OPENAI_WORDS.keys() == CODES


def test_other_paths_get_problem_documents() -> None:
    """Also those that only look like a protocol's."""
    assert {envelope_of({"path": path}) is SYSTEM_ONE for path in ("/v1/systemone", "/v1/models")} == {True}
    assert envelope_of({"path": "/v1/decisions"}) is OPENAI
    for path in ("/decide", "/v1/systemone/", "/v1", "/V1/decisions", ""):
        assert envelope_of({"path": path}) is PROBLEM_DOCUMENT
    assert envelope_of({}) is PROBLEM_DOCUMENT


@pytest.mark.parametrize("path", ENVELOPES)
@pytest.mark.parametrize("case", [*CASES, *OTHER_CASES], ids=lambda case: case.id)
def test_an_answer_of_a_protocol(case: ProblemCase, path: str) -> None:
    """C1, P1: its shape; what may be retried says when; what the row calls a client's fault is not called ours."""
    status, body, headers = answered(path, case.error)
    assert headers["content-type"] == "application/json"
    assert ("retry-after" in headers) is case.may_retry
    assert status // 100 == case.status // 100
    assert CANARY not in str(body) + str(headers)
    if path == "/v1/decisions":
        assert body["error"].keys() == {"message", "type", "param", "code"}
        assert body["error"]["message"]
    elif status == 422:
        assert [detail.keys() for detail in body["detail"]] == [{"loc", "msg", "type"}] * len(case.problems)
    else:
        assert body["detail"].keys() == {"error_type", "message"}
        assert all(body["detail"].values())


def test_system_one_tells_no_key_from_a_wrong_one() -> None:
    """As the live service does; `/decide` and OpenAI's clients do not need to know."""
    wanted = {NoKey: (403, "Must supply an API key!"), UnknownKey: (401, "Cannot authenticate with the server.")}
    for kind, (expected, message) in wanted.items():
        status, body, _ = answered("/v1/systemone", kind())
        detail = {"error_type": "authentication_error", "message": message}
        assert (status, body) == (expected, {"detail": detail})
        assert answered("/v1/decisions", kind())[0] == answered("/decide", kind())[0] == 401


def test_places_as_fastapi_writes_them() -> None:
    """Names are text, also those that look like numbers; the levels of a score are counted."""
    places = ["", "/state", "/questions/1/choice/criteria/0", "/questions/a~1b/score/criteria/1", "/x_policy/seed"]
    status, body, _ = answered("/v1/systemone", rejected(*places))
    assert status == 422
    assert [detail["loc"] for detail in body["detail"]] == [
        ["body"],
        ["body", "state"],
        ["body", "questions", "1", "choice", "criteria", "0"],
        ["body", "questions", "a/b", "score", "criteria", 1],
        ["body", "x_policy", "seed"],
    ]


@pytest.mark.parametrize(
    ("place", "param"),
    [
        ("", None),
        ("/input", "input"),
        ("/input/0/content/2", "input[0].content[2]"),
        ("/questions/0/choice/choices/1/value", "questions[0].choices[1].value"),
        ("/questions/3/levels/0", "questions[3].levels[0]"),
        ("/questions/3", "questions[3]"),
        ("/x_policy/seed", "x_policy.seed"),
    ],
)
def test_places_as_openai_writes_them(place: str, param: str | None) -> None:
    """The kind of a question is no part of where it stands."""
    status, body, _ = answered("/v1/decisions", rejected(place))
    message = f"{param}: must be good" if param else "must be good"
    expected = {"message": message, "type": "invalid_request_error", "param": param, "code": "schema_rejected"}
    assert (status, body["error"]) == (400, expected)


def test_a_message_quotes_no_field_of_the_callers() -> None:
    """P1: messages are logged by clients; where a field is called as nobody has called it, only `param` says so."""
    problem = Problem(pointer=f"/{CANARY}", code="extra_forbidden", message="there is no such field")
    _, body, _ = answered("/v1/decisions", SchemaRejected(problem))
    assert (body["error"]["message"], body["error"]["param"]) == ("there is no such field", CANARY)


def test_a_message_does_not_list_everything() -> None:
    """OpenAI's shape has room for one message only."""
    _, body, _ = answered("/v1/decisions", rejected(*(f"/questions/{n}" for n in range(100))))
    assert body["error"]["message"].count("must be good") == TOLD_PROBLEMS


def test_a_model_that_is_not_here() -> None:
    """Each protocol has a status of its own for that."""
    problem = Problem(pointer="/model", code="unknown_model", message="there is none")
    status, body, _ = answered("/v1/systemone", NotOffered(problem))
    assert (status, body["detail"]) == (400, {"error_type": "api_usage_error", "message": "there is none"})
    status, body, _ = answered("/v1/decisions", NotOffered(problem))
    assert (status, body["error"]["code"], body["error"]["param"]) == (404, "model_not_found", "model")
    images = NotOffered(Problem(pointer="/input/0", code="no_images", message="no images"))
    assert answered("/v1/decisions", images)[0] == 400
