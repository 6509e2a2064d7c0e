"""Log lines: one JSON object each, from a fixed list of fields. No text of a request ever gets in.

A line is `{"time", "level", "event", ...}`; `event` is a constant of ours, and what else a record carries is written
only if it is in `FIELDS`. Exceptions are written as their type and the place that raised them: messages can quote
input.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import traceback
from collections.abc import Mapping

LOGGER = logging.getLogger("onestep")

FIELDS: Mapping[str, type] = {
    "request_id": str,
    "route": str,
    "status": int,
    "seconds": float,
    "phase": str,
    "model": str,
    "dtype": str,
    "host": str,
    "port": int,
    "fingerprint": str,
    "exit_code": int,
    "reason": str,
}


class JsonFormatter(logging.Formatter):
    """Formats a record of ours from the list of fields, and a record of anybody else as its logger's name only."""

    def format(self, record: logging.LogRecord) -> str:
        is_ours = record.name == LOGGER.name
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname,
            "event": record.msg if is_ours else f"log of {record.name}",
        }
        if is_ours:
            line.update({name: record.__dict__[name] for name in FIELDS if name in record.__dict__})
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = type(record.exc_info[1]).__name__
            line["at"] = raised_at(record.exc_info[1])
        return json.dumps(line, ensure_ascii=True)


def raised_at(error: BaseException) -> str:
    """The innermost place an exception passed: module file and line, no source text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else "unknown"


def configure_logging(level: str) -> None:
    """Send everything this process logs to standard output as JSON lines. Other people's loggers are kept to errors."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.ERROR, handlers=[handler], force=True)
    LOGGER.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def log(level: int, event: str, *, error: BaseException | None = None, **fields: object) -> None:
    """Write one line.

    Raises:
        ValueError: a field is not in the list or not of its type; this is a bug.
    """
    if wrong := [name for name, value in fields.items() if not isinstance(value, FIELDS.get(name, ()))]:
        raise ValueError(f"log fields {sorted(wrong)} are not in the allow-list; this is a bug")
    LOGGER.log(level, event, exc_info=error, extra=fields)
