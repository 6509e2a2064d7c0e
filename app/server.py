"""The server: settings, socket, signals, exit code.

0   stopped on SIGTERM or SIGINT after answering what was accepted
1   the engine died, while serving or before a stop had closed the port
2   stopped, but requests that were under way were cut off: by a second signal, or because they did not end
3   could not start: bad settings, unusable checkpoint, engine did not come up
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn

from app.admission import Admission
from app.connection import Connection
from app.lifecycle import Lifecycle, Phase
from app.logging import configure_logging, log
from app.main import create_app, make_admission, make_engine
from app.settings import BadSettings, Settings

EXIT_OK = 0
EXIT_ENGINE_DIED = 1
EXIT_CUT_OFF = 2
EXIT_COULD_NOT_START = 3
# Answers that are ready when the port closes get this long to be sent; what still arrives then is cut off.
SENDING_SECONDS = 2
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTimes:
    """How long the steps of a stop may take.

    Attributes:
        delay_seconds: `/health` says 503 and the port stays open, so that whoever balances the load learns of it.
        drain_seconds: what was accepted is finished.
    """

    delay_seconds: float
    drain_seconds: float


class Server(uvicorn.Server):
    """uvicorn's server, stopped in order: it goes on answering until what was accepted is done, then closes the port.

    uvicorn closes the port first, so that a probe finds nobody instead of a 503 and whoever balances the load goes on
    sending requests until it notices.
    """

    def __init__(self, config: uvicorn.Config, *, lifecycle: Lifecycle, admission: Admission, times: StopTimes) -> None:
        super().__init__(config)
        self.exit_code = EXIT_OK
        self._lifecycle, self._admission, self._times = lifecycle, admission, times
        self._stopping: asyncio.Task[None] | None = None

    def fail(self, exit_code: int) -> None:
        """End the process with this code, unless it is ending already."""
        if not self.should_exit:
            self.exit_code = exit_code
            # Nothing that is under way will be answered any more, except by what it was refused with.
            self.config.timeout_graceful_shutdown = SENDING_SECONDS
            self.should_exit = True

    def stop(self, number: int) -> None:
        """Stop in order; at once when told so a second time.

        Args:
            number: of the signal. SIGINT comes from a person who waits, so nothing is waited for but what is accepted.
        """
        log(logging.INFO, "told to stop", reason=signal.Signals(number).name)
        if self._stopping is not None:
            self._stop_at_once()
            return
        delay = 0.0 if number == signal.SIGINT else self._times.delay_seconds
        self._stopping = asyncio.create_task(self._stop_in_order(delay), name="stop")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but with our way to stop, and without raising the signal again after it."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self.stop, number)
        try:
            yield
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)

    async def _stop_in_order(self, delay_seconds: float) -> None:
        if self._lifecycle.is_ready:  # otherwise nothing was accepted, and whoever asks is sent away already
            self._lifecycle.enter(Phase.DRAINING)
            await asyncio.sleep(delay_seconds)
            try:
                async with asyncio.timeout(self._times.drain_seconds):
                    await self._admission.until_idle()
            except TimeoutError:
                self.exit_code = EXIT_CUT_OFF
            if self._lifecycle.phase is Phase.FAILED:  # the requests that ended were refused, and nobody has looked yet
                self.exit_code = EXIT_ENGINE_DIED
        self.should_exit = True

    def _stop_at_once(self) -> None:
        if self.exit_code == EXIT_OK and self.server_state.tasks:
            self.exit_code = EXIT_CUT_OFF
        self.should_exit = self.force_exit = True
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()


def stop_times(settings: Settings) -> StopTimes:
    """How long a stop takes at most: every request that was accepted gets as long as any may take."""
    return StopTimes(delay_seconds=settings.drain_delay_seconds, drain_seconds=settings.deadline_seconds)


def serve(settings: Settings) -> int:
    """Serve until told to stop; returns the exit code."""

    def on_failure(phase: Phase) -> None:
        server.fail(EXIT_COULD_NOT_START if phase is Phase.STARTING else EXIT_ENGINE_DIED)

    lifecycle, admission = Lifecycle(), make_admission(settings)
    app = create_app(settings, make_engine(settings), on_failure, lifecycle=lifecycle, admission=admission)
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SENDING_SECONDS,
    )
    server = Server(config, lifecycle=lifecycle, admission=admission, times=stop_times(settings))
    log(logging.INFO, "starting", host=settings.host, port=settings.port, model=settings.model_name)
    try:
        server.run()
    except SystemExit:  # uvicorn's way to say that the port cannot be bound
        log(logging.ERROR, "cannot listen", host=settings.host, port=settings.port)
        return EXIT_COULD_NOT_START
    return server.exit_code if server.started else EXIT_COULD_NOT_START


def main() -> int:
    """Serve as the environment says; returns the exit code."""
    try:
        settings = Settings.from_env(os.environ)
    except BadSettings as error:
        configure_logging("INFO")
        log(logging.ERROR, "bad settings", reason=str(error), exit_code=EXIT_COULD_NOT_START)
        return EXIT_COULD_NOT_START
    # The engine's processes inherit the environment, and need no keys.
    os.environ.pop("DECIDE_API_KEYS", None)
    configure_logging(settings.log_level)
    exit_code = serve(settings)
    log(logging.INFO, "stopped", exit_code=exit_code)
    return exit_code
