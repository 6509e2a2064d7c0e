"""Fixtures of the service's tests, and hypothesis: the same examples on every run and every machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tokenizers import Tokenizer as Backend

from app.admission import Admission
from app.lifecycle import Lifecycle, Phase
from app.logging import LOGGER, JsonFormatter

# No deadline: it is wall time, and test machines are shared.
settings.register_profile("onestep", deadline=None, derandomize=True)
settings.load_profile("onestep")

Decode = Callable[[Sequence[int]], str]


@pytest.fixture(scope="session")
def decode(checkpoint: Path) -> Decode:
    """Token ids to text, control tokens written out, by the tokenizers library alone."""
    backend = Backend.from_file(str(checkpoint / "tokenizer.json"))

    def decode_all(token_ids: Sequence[int]) -> str:
        text: str = backend.decode(list(token_ids), skip_special_tokens=False)
        return text

    return decode_all


@pytest.fixture(scope="session")
def control_texts(checkpoint: Path) -> dict[int, str]:
    """What each control token of the demo tokenizer is written as, by the tokenizers library alone."""
    backend = Backend.from_file(str(checkpoint / "tokenizer.json"))
    decoder = backend.get_added_tokens_decoder()
    return {token_id: token.content for token_id, token in decoder.items() if token.special}


class Lines(logging.Handler):
    """Keeps what is logged, formatted as the service formats it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.lines: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(json.loads(self.format(record)))


@pytest.fixture
def lines() -> Iterator[list[dict[str, Any]]]:
    """The service's log lines, DEBUG included."""
    handler, level = Lines(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.DEBUG)
    yield handler.lines
    LOGGER.setLevel(level)
    LOGGER.removeHandler(handler)


@pytest.fixture
def lifecycle() -> Lifecycle:
    """A life that has come to READY."""
    lifecycle = Lifecycle()
    lifecycle.enter(Phase.READY)
    return lifecycle


@pytest.fixture
def admission() -> Admission:
    """Two permits."""
    return Admission(2)
