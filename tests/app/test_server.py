"""The server's stop and its exit code. Signals, sockets and processes: tests/process."""

from __future__ import annotations

import asyncio
import signal

import pytest
import uvicorn

from app.admission import Admission
from app.lifecycle import Lifecycle, Phase
from app.server import (
    EXIT_COULD_NOT_START,
    EXIT_CUT_OFF,
    EXIT_ENGINE_DIED,
    EXIT_OK,
    SENDING_SECONDS,
    Server,
    StopTimes,
    stop_times,
)
from app.settings import Settings
from tests.app.service import until


@pytest.fixture
def server(lifecycle: Lifecycle, admission: Admission) -> Server:
    """A server that does not listen, and waits for nobody to hear of its stop."""
    return make_server(lifecycle, admission, StopTimes(delay_seconds=0.0, drain_seconds=60.0))


def make_server(lifecycle: Lifecycle, admission: Admission, times: StopTimes) -> Server:
    """A server that does not listen."""
    config = uvicorn.Config("nothing:app", log_config=None)
    return Server(config, lifecycle=lifecycle, admission=admission, times=times)


def test_exit_codes() -> None:
    """R9: supervisors act on them."""
    assert (EXIT_OK, EXIT_ENGINE_DIED, EXIT_CUT_OFF, EXIT_COULD_NOT_START) == (0, 1, 2, 3)


def test_a_failure_ends_the_server(server: Server) -> None:
    """R9, R13: with its code, and it waits for nobody longer than an answer takes to be sent."""
    assert server.exit_code == EXIT_OK
    server.fail(EXIT_ENGINE_DIED)
    assert (server.should_exit, server.exit_code) == (True, EXIT_ENGINE_DIED)
    assert server.config.timeout_graceful_shutdown == SENDING_SECONDS


def test_a_failure_of_a_server_that_is_ending_changes_nothing(server: Server) -> None:
    """R9: an engine that goes when everything is answered is part of the stop, which was asked for."""
    server.should_exit = True
    server.fail(EXIT_ENGINE_DIED)
    assert server.exit_code == EXIT_OK


def test_a_stop_waits_for_every_answer() -> None:
    """R8: as long as the slowest that was accepted may take, after the delay that was asked for."""
    times = stop_times(Settings(deadline_seconds=7.5, drain_delay_seconds=3.0))
    assert times == StopTimes(delay_seconds=3.0, drain_seconds=7.5)


async def test_a_stop_waits_for_what_was_accepted(server: Server, lifecycle: Lifecycle, admission: Admission) -> None:
    """R8: draining at once, and the port closes when the last request is done, not before."""
    with admission.permit():
        server.stop(signal.SIGTERM)
        await until(lambda: lifecycle.phase is Phase.DRAINING)
        await asyncio.sleep(0.05)
        assert not server.should_exit
    await until(lambda: server.should_exit)
    assert (server.exit_code, server.force_exit) == (EXIT_OK, False)


async def test_the_port_stays_open_for_the_delay(admission: Admission) -> None:
    """R8: with nothing under way too; an interrupt, which a person sends, does not wait."""
    times = StopTimes(delay_seconds=3600.0, drain_seconds=60.0)
    for number, is_waited in ((signal.SIGTERM, True), (signal.SIGINT, False)):
        lifecycle = Lifecycle()
        lifecycle.enter(Phase.READY)
        server = make_server(lifecycle, admission, times)
        server.stop(number)
        await until(lambda: lifecycle.phase is Phase.DRAINING)  # noqa: B023 - awaited before the next turn
        await asyncio.sleep(0.05)
        assert server.should_exit is not is_waited


async def test_a_request_that_never_ends_is_not_waited_for(lifecycle: Lifecycle, admission: Admission) -> None:
    """R8, R9: longer than any may take; the code says that it was cut off."""
    server = make_server(lifecycle, admission, StopTimes(delay_seconds=0.0, drain_seconds=0.01))
    with admission.permit():
        server.stop(signal.SIGTERM)
        await until(lambda: server.should_exit)
    assert server.exit_code == EXIT_CUT_OFF


async def test_a_stop_before_ready_waits_for_nobody(admission: Admission) -> None:
    """R11: nothing was accepted, and `/health` has said 503 all along."""
    server = make_server(Lifecycle(), admission, StopTimes(delay_seconds=3600.0, drain_seconds=3600.0))
    server.stop(signal.SIGTERM)
    await until(lambda: server.should_exit)
    assert server.exit_code == EXIT_OK


async def test_a_second_signal_stops_at_once(server: Server, admission: Admission) -> None:
    """R9: whatever is under way, with a code that says so."""
    with admission.permit():
        server.stop(signal.SIGTERM)
        await asyncio.sleep(0.01)
        assert not server.should_exit
        server.server_state.tasks.add(asyncio.create_task(asyncio.sleep(60)))
        server.stop(signal.SIGTERM)
        assert (server.should_exit, server.force_exit, server.exit_code) == (True, True, EXIT_CUT_OFF)


@pytest.mark.parametrize("before", [EXIT_OK, EXIT_ENGINE_DIED])
async def test_a_second_signal_that_cuts_nothing_off(server: Server, before: int) -> None:
    """R9: it hurries a stop that has answered everything, and changes nothing of what has happened."""
    server.exit_code = before
    for _ in range(2):
        server.stop(signal.SIGTERM)
    assert (server.force_exit, server.exit_code) == (True, before)


async def test_an_engine_that_dies_while_requests_finish(
    server: Server, lifecycle: Lifecycle, admission: Admission
) -> None:
    """R9: they were accepted and are refused after all, so the stop was no clean one, whoever noticed first."""
    with admission.permit():
        server.stop(signal.SIGTERM)
        await until(lambda: lifecycle.phase is Phase.DRAINING)
        lifecycle.enter(Phase.FAILED)
    await until(lambda: server.should_exit)
    assert server.exit_code == EXIT_ENGINE_DIED


async def test_an_engine_that_dies_while_the_port_is_open(server: Server, admission: Admission) -> None:
    """R9, R13: and the supervisor sees it first."""
    with admission.permit():
        server.stop(signal.SIGTERM)
        await asyncio.sleep(0.01)
        server.fail(EXIT_ENGINE_DIED)
        assert (server.should_exit, server.exit_code) == (True, EXIT_ENGINE_DIED)
