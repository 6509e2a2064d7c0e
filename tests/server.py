"""The service as a process of its own, driven over a socket as its users drive it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

# Generous: a start takes half a minute on two idle cores, and test machines are shared.
READY_SECONDS = 180.0
GONE_SECONDS = 30.0


class ServerProcess:
    """`python -m app` on a free loopback port. As a context manager it leaves no process behind."""

    module = "app"
    # What starts it, in a process that it then takes over.
    launcher: tuple[str, ...] = ()

    def __init__(self, log: Path, **environment: str) -> None:
        self.log = log
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        # Nobody balances a load here, so nobody has to learn of a stop.
        ours = {"DECIDE_PORT": str(self.port), "DECIDE_DRAIN_DELAY_SECONDS": "0"}
        self._environment = {**os.environ, **ours, **environment}
        self.process: subprocess.Popen[bytes] | None = None
        self._family: dict[int, psutil.Process] = {}

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*self.launcher, sys.executable, "-m", self.module],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        return self

    def __exit__(self, *_: object) -> None:
        family = self.family()
        self.running.terminate()
        try:
            self.running.wait(GONE_SECONDS)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()
        for process in family:
            if process.is_running():
                process.kill()

    @property
    def running(self) -> subprocess.Popen[bytes]:
        """The server's own process."""
        assert self.process is not None, "the server was not started"
        return self.process

    def family(self) -> list[psutil.Process]:
        """The server's process and every descendant seen so far, whether it still runs or not."""
        try:
            own = psutil.Process(self.running.pid)
            for process in (own, *own.children(recursive=True)):
                self._family.setdefault(process.pid, process)
        except psutil.NoSuchProcess:
            pass  # what was seen before still counts
        return list(self._family.values())

    def engine_processes(self) -> list[psutil.Process]:
        """vLLM's processes, by the names it gives them."""
        return [process for process in self.family() if process.is_running() and "VLLM::" in _command(process)]

    def command_lines(self) -> list[str]:
        """The command lines of the family."""
        return [_command(process) for process in self.family()]

    def shared_memory(self) -> list[Path]:
        """The shared memory segments that processes of the family have mapped."""
        maps = (Path(mapped.path) for process in self.family() for mapped in process.memory_maps())
        return sorted({path for path in maps if path.is_relative_to("/dev/shm") and path.exists()})

    def survivors(self, within_seconds: float = GONE_SECONDS) -> list[psutil.Process]:
        """What still runs of the family after waiting at most that long for all of it to end."""
        _, alive = psutil.wait_procs(list(self._family.values()), timeout=within_seconds)
        return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]

    def wait_until_ready(self, within_seconds: float = READY_SECONDS) -> None:
        """Poll `/health` until it is 200."""
        self.wait_for(lambda: self.health_status() == 200, within_seconds)
        self.family()

    def wait_for(self, condition: Any, within_seconds: float) -> None:
        """Poll a condition; the process must stay alive meanwhile."""
        deadline = time.monotonic() + within_seconds
        while not condition():
            assert self.running.poll() is None, f"the server ended:\n{self.log.read_text()}"
            assert time.monotonic() < deadline, f"not in {within_seconds} s:\n{self.log.read_text()}"
            time.sleep(0.1)

    def wait_for_status(self, status: int | None, within_seconds: float) -> None:
        """Poll `/health` until it is this; None: until nobody listens. The process may end meanwhile."""
        deadline = time.monotonic() + within_seconds
        while self.health_status() != status:
            assert time.monotonic() < deadline, f"not in {within_seconds} s:\n{self.log.read_text()}"
            time.sleep(0.1)

    def health_status(self) -> int | None:
        """Status of `/health`, None while nobody listens."""
        try:
            return httpx.get(f"{self.url}/health", timeout=5).status_code
        except httpx.TransportError:
            return None

    def metric(self, name: str) -> float:
        """The value of the first series on the metrics page that begins with this."""
        lines = httpx.get(f"{self.url}/metrics", timeout=30).text.splitlines()
        return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def decide(self, body: Any, *, max_reads: int | None = 1, **options: Any) -> httpx.Response:
        """POST a JSON body to `/decide`; it asks for one read unless told, so that what is compared is one read."""
        return httpx.post(f"{self.url}/decide", json=asking_for_reads(body, max_reads), timeout=60, **options)

    def stop(self, number: signal.Signals) -> int:
        """Send a signal and wait for the exit code."""
        self.family()
        self.running.send_signal(number)
        return self.running.wait(60)


class SlowServerProcess(ServerProcess):
    """The same over a fake engine whose reads take `SLOW_READ_SECONDS`."""

    module = "tests.slow_service"

    def __init__(self, log: Path, **environment: str) -> None:
        # One read: the service's own first decision would take the time of several.
        super().__init__(log, **{"DECIDE_MAX_READS": "1", **environment})


def asking_for_reads(body: Any, max_reads: int | None) -> Any:
    """A body that asks for at most so many reads, unless it says itself how many; None: the server's own."""
    if not isinstance(body, dict) or max_reads is None:
        return body
    return {**body, "policy": {"max_reads": max_reads, **body.get("policy", {})}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""
