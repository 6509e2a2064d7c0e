"""The processes an engine started: known from the first moment, stopped to the last one."""

from __future__ import annotations

import multiprocessing
import time

import psutil

POLL_SECONDS = 0.02


class ProcessFamily:
    """Every process that `multiprocessing` starts here after this object was made, and their descendants.

    Other children of this process are left alone, multiprocessing's resource tracker among them: it must live until
    the others are gone, to remove their shared memory.
    """

    def __init__(self) -> None:
        self._strangers = {child.pid for child in multiprocessing.active_children()}
        self._seen: dict[int, psutil.Process] = {}

    def members(self) -> list[psutil.Process]:
        """Every member seen so far that still runs. A grandchild is known once it was seen, even as an orphan."""
        for child in multiprocessing.active_children():
            if child.pid is not None and child.pid not in self._strangers:
                self._remember(child.pid)
        return [process for process in self._seen.values() if _runs(process)]

    def stop(self, grace_seconds: float) -> None:
        """Terminate every member, and kill what is left after `grace_seconds`."""
        for process in self.members():
            _end(process, kill=False)
        self._wait(grace_seconds)
        for process in self.members():
            _end(process, kill=True)
        self._wait(grace_seconds)

    def _wait(self, seconds: float) -> None:
        # Not psutil's own wait: it would take the exit status of a child from `multiprocessing`, which then believes
        # in the child for ever.
        deadline = time.monotonic() + seconds
        while self.members() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)

    def _remember(self, pid: int) -> None:
        try:
            child = psutil.Process(pid)
            for process in (child, *child.children(recursive=True)):
                self._seen.setdefault(process.pid, process)
        except psutil.NoSuchProcess:
            return  # it ended while we looked


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _end(process: psutil.Process, *, kill: bool) -> None:
    try:
        process.kill() if kill else process.terminate()
    except psutil.NoSuchProcess:
        return  # it ended by itself, which is what we want
