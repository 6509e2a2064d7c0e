"""Measurements of a service that is started for them: `python -m bench.own_service COMMAND ...`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import httpx

from app.settings import PREFIX
from bench.engines import EngineOptions

READY_SECONDS, STOP_SECONDS = 300.0, 120.0


@contextmanager
def own_service(options: EngineOptions | None = None) -> Iterator[str]:
    """The URL of a service, on a port of its own, for the length of the context: with these options, or else with the
    environment's settings."""
    port = free_port()
    ours = {"DECIDE_PORT": str(port), "DECIDE_DRAIN_DELAY_SECONDS": "0", **(settings_of(options) if options else {})}
    with running_service([sys.executable, "-m", "app"], {**os.environ, **ours}, port) as url:
        yield url


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def running_service(command: Sequence[str], environment: Mapping[str, str], port: int) -> Iterator[str]:
    """The URL of a service that a command starts, once its `/health` says that it is ready."""
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as service:  # noqa: S603 - our own
        try:
            _await_ready(service, f"http://127.0.0.1:{port}")
            yield f"http://127.0.0.1:{port}"
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(STOP_SECONDS)


def settings_of(options: EngineOptions) -> dict[str, str]:
    """What decides a read's cost, as variables."""
    settings = options.settings()
    named = ("dtype", "max_model_len", "canvas_length", "max_num_seqs", "max_batched_tokens", "kv_cache_gib")
    values = {name: getattr(settings, name) for name in (*named, "block_size", "bundle_tokens")}
    variables = {PREFIX + name.upper(): str(value) for name, value in values.items()}
    return {**variables, **({f"{PREFIX}MODEL": options.model} if options.model else {})}


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
