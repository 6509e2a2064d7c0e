"""The server: settings, socket, signals, exit code.

0   stopped on SIGTERM or SIGINT after answering what was accepted
1   the engine died while serving
3   could not start: bad settings, unusable checkpoint, engine did not come up
"""

from __future__ import annotations

import logging
import math
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from app.lifecycle import Phase
from app.logging import configure_logging, log
from app.main import create_app, make_engine
from app.settings import BadSettings, Settings

EXIT_OK = 0
EXIT_ENGINE_DIED = 1
EXIT_COULD_NOT_START = 3
# Answers that are under way when the process is told to stop get as long as any may take, and this to be sent.
SENDING_SECONDS = 2


class Server(uvicorn.Server):
    """uvicorn's server with our exit codes: a stop that was asked for is a success."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.exit_code = EXIT_OK

    def fail(self, exit_code: int) -> None:
        """End the process with this code, unless it is ending already."""
        if not self.should_exit:
            self.exit_code = exit_code
            self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Like uvicorn's, but without raising the signal again after the shutdown."""
        handled = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self.handle_exit) for number in handled}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def drain_seconds(settings: Settings) -> int:
    """How long a stop may take at most: uvicorn takes whole seconds."""
    return math.ceil(settings.deadline_seconds) + SENDING_SECONDS


def serve(settings: Settings) -> int:
    """Serve until told to stop; returns the exit code."""

    def on_failure(phase: Phase) -> None:
        server.fail(EXIT_COULD_NOT_START if phase is Phase.STARTING else EXIT_ENGINE_DIED)

    app = create_app(settings, make_engine(settings), on_failure)
    server = Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=drain_seconds(settings),
        )
    )
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
    configure_logging(settings.log_level)
    exit_code = serve(settings)
    log(logging.INFO, "stopped", exit_code=exit_code)
    return exit_code
