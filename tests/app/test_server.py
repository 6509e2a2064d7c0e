"""The server's exit code. Signals, sockets and processes: tests/process."""

from __future__ import annotations

import pytest
import uvicorn

from app.server import EXIT_COULD_NOT_START, EXIT_ENGINE_DIED, EXIT_OK, Server, drain_seconds
from app.settings import Settings


@pytest.fixture
def server() -> Server:
    """A server that does not listen."""
    return Server(uvicorn.Config("nothing:app", log_config=None))


def test_exit_codes() -> None:
    """R9: supervisors act on them."""
    assert (EXIT_OK, EXIT_ENGINE_DIED, EXIT_COULD_NOT_START) == (0, 1, 3)


def test_a_failure_ends_the_server(server: Server) -> None:
    """R9: with its code."""
    assert server.exit_code == EXIT_OK
    server.fail(EXIT_ENGINE_DIED)
    assert (server.should_exit, server.exit_code) == (True, EXIT_ENGINE_DIED)


def test_a_failure_of_a_server_that_is_ending_changes_nothing(server: Server) -> None:
    """R9: an engine that goes while the server stops is part of the stop, which was asked for."""
    server.should_exit = True
    server.fail(EXIT_ENGINE_DIED)
    assert server.exit_code == EXIT_OK


@pytest.mark.parametrize(("deadline", "drain"), [(30.0, 32), (0.01, 3), (3600.0, 3602)])
def test_a_stop_waits_for_every_answer(deadline: float, drain: int) -> None:
    """R8: as long as the slowest that was accepted may take."""
    assert drain_seconds(Settings(deadline_seconds=deadline)) == drain
