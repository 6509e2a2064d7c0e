"""Log lines: fixed fields, no text of anybody."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from app.logging import FIELDS, LOGGER, JsonFormatter, configure_logging, log, raised_at
from tests.app.canary import CANARY

FOREIGN = ("uvicorn", "uvicorn.error", "uvicorn.access")


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    """Leave Python's logging as it was."""
    loggers = [logging.getLogger(name) for name in ("", LOGGER.name, *FOREIGN)]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    logging.getLogger().handlers[:] = []
    yield
    for logger, (handlers, level, propagate) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.propagate = handlers, propagate
        logger.setLevel(level)


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """Everything logged since the last call; nothing on standard error."""
    output = capsys.readouterr()
    assert output.err == ""
    return [json.loads(line) for line in output.out.splitlines()]


def failure() -> BaseException:
    """An exception that was raised here and quotes a patient."""
    try:
        raise ValueError(CANARY)
    except ValueError as error:
        return error


def test_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """One JSON object with time, level and event, then the fields that were given."""
    configure_logging("INFO")
    log(logging.INFO, "request", request_id="req_1", route="/decide", status=200, seconds=0.25)
    (line,) = lines_of(capsys)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "INFO",
        "event": "request",
        "request_id": "req_1",
        "route": "/decide",
        "status": 200,
        "seconds": 0.25,
    }


def test_the_list_of_fields() -> None:
    """P2: what a line may hold; none of it is text of a request."""
    texts = ("request_id", "route", "phase", "model", "dtype", "host", "fingerprint", "reason")
    numbers = {"status": int, "seconds": float, "port": int, "exit_code": int}
    assert dict(FIELDS) == {**dict.fromkeys(texts, str), **numbers}


def test_every_field_can_be_logged(capsys: pytest.CaptureFixture[str]) -> None:
    """P2: none collides with what Python's logging keeps in a record."""
    configure_logging("INFO")
    fields: dict[str, Any] = {name: kind() for name, kind in FIELDS.items()}
    log(logging.INFO, "all", **fields)
    (line,) = lines_of(capsys)
    assert line.keys() == {"time", "level", "event", *FIELDS}


@pytest.mark.parametrize("name", ["state", "message", "exc_info", "status", "seconds"])
def test_an_unknown_field_is_a_bug(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """P2: so is a known one of another type. It raises where it is written, and nothing is logged."""
    configure_logging("DEBUG")
    fields: dict[str, Any] = {name: CANARY}
    with pytest.raises(ValueError, match="allow-list") as refusal:
        log(logging.INFO, "request", **fields)
    assert CANARY not in str(refusal.value)
    assert lines_of(capsys) == []


def test_an_exception_is_its_type_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    """P1: messages can quote input, so neither message nor source line nor local is written."""
    configure_logging("DEBUG")
    log(logging.ERROR, "request failed", error=failure(), request_id="req_1")
    (line,) = lines_of(capsys)
    assert line.keys() == {"time", "level", "event", "request_id", "error", "at"}
    assert (line["level"], line["error"]) == ("ERROR", "ValueError")
    assert re.fullmatch(r"test_logging\.py:\d+", line["at"])


def test_the_place_is_the_innermost() -> None:
    """Where it was raised, not where it passed; an exception that was never raised has none."""
    error = failure()
    assert error.__traceback__ is not None
    assert raised_at(error) == f"test_logging.py:{error.__traceback__.tb_lineno}"
    assert raised_at(ValueError()) == "unknown"


def test_a_line_break_does_not_make_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a field holds, one record is one line, in ASCII."""
    configure_logging("INFO")
    log(logging.INFO, "bad settings", reason='a\n{"event": "forged"}\u2028ä')
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    assert output.isascii()
    assert json.loads(output)["reason"] == 'a\n{"event": "forged"}\u2028ä'


def test_level(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours follows the setting."""
    configure_logging("WARNING")
    log(logging.INFO, "quiet")
    log(logging.WARNING, "loud")
    assert [line["event"] for line in lines_of(capsys)] == ["loud"]


@pytest.mark.parametrize(
    "name", ["httpx", "asyncio", "somebody.else", "uvicorn.error", "uvicorn.access", "onestep.below"]
)
def test_a_foreign_message_is_never_written(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """P1: of other people's records there is the logger's name and the exception's type, errors only."""
    configure_logging("DEBUG")
    foreign = logging.getLogger(name)
    foreign.error(f"{CANARY} %s", CANARY, exc_info=failure(), stack_info=True)
    (line,) = lines_of(capsys)
    assert line["event"] == f"log of {name}"
    assert line.keys() == {"time", "level", "event", "error", "at"}


def test_a_field_of_a_foreign_record_is_never_written(capsys: pytest.CaptureFixture[str]) -> None:
    """P1: not even under a name that is one of ours."""
    configure_logging("DEBUG")
    extra: dict[str, object] = dict.fromkeys(FIELDS, CANARY)
    logging.getLogger("httpx").error("x", extra=extra)
    (line,) = lines_of(capsys)
    assert line.keys() == {"time", "level", "event"}


def test_foreign_information_is_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    """P3: our level raises nobody else's."""
    configure_logging("DEBUG")
    for name in ("httpx", "vllm.engine", "uvicorn.access"):
        logging.getLogger(name).warning(CANARY)
    assert lines_of(capsys) == []


def test_uvicorn_logs_nothing_on_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Handlers it has set up before are taken away, so its lines pass through ours."""
    for name in FOREIGN:
        logging.getLogger(name).addHandler(logging.StreamHandler())
    configure_logging("INFO")
    logging.getLogger("uvicorn.error").error(CANARY)
    assert [line["event"] for line in lines_of(capsys)] == ["log of uvicorn.error"]


def test_a_record_with_an_empty_exception() -> None:
    """`exc_info=True` outside of an `except` block."""
    record = logging.LogRecord(LOGGER.name, logging.ERROR, "f.py", 1, "event", (), (None, None, None))
    assert json.loads(JsonFormatter().format(record)).keys() == {"time", "level", "event"}
