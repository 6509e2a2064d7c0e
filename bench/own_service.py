"""Measurements of a service that is started for them: `python -m bench.own_service COMMAND ...`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

READY_SECONDS, STOP_SECONDS = 300.0, 120.0


@contextmanager
def own_service() -> Iterator[str]:
    """The URL of a service with the environment's settings, on a port of its own, for the length of the context."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "DECIDE_PORT": str(port), "DECIDE_DRAIN_DELAY_SECONDS": "0"}
    with subprocess.Popen([sys.executable, "-m", "app"], env=environment, stdout=subprocess.DEVNULL) as service:
        try:
            _await_ready(service, f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(STOP_SECONDS)


def _await_ready(service: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and service.poll() is None:
        try:
            if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass  # it does not listen yet
        time.sleep(0.5)
    raise RuntimeError("the service did not become ready: start it by itself to see why")


def main() -> None:
    """Each command, against the same service."""
    with own_service() as url:
        for command in sys.argv[1:]:
            subprocess.run([sys.executable, "-m", "bench", command, "--url", url], check=True)  # noqa: S603 - our own


if __name__ == "__main__":
    main()
