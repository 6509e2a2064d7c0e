"""What the process tests run in other processes. It imports nothing heavy: each of them imports this module again."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import psutil

SPAWN = multiprocessing.get_context("spawn")
# Far more than a process takes to start, to end, or to say something.
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Child:
    """A running child that has said it is ready, and what it says from then on."""

    process: BaseProcess
    says: Connection

    @classmethod
    def start(cls, program: str) -> Child:
        """Start one of the functions below; returns when it runs."""
        ours, theirs = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=globals()[program], args=(theirs,))
        process.start()
        theirs.close()
        child = cls(process, ours)
        assert child.hear() == "ready"
        return child

    def hear(self) -> Any:
        """The next thing it says.

        Raises:
            EOFError: it is gone.
            TimeoutError: it says nothing.
        """
        if not self.says.poll(PATIENCE_SECONDS):
            raise TimeoutError("the child says nothing")
        return self.says.recv()


def has_ended(pid: int) -> bool:
    """Whether a process runs no more. Its entry may be there until whoever inherited it takes notice."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def polite(says: Connection) -> None:
    """Says so when it is asked to end, and ends."""

    def end(*_: object) -> None:
        says.send("ended")
        sys.exit()

    signal.signal(signal.SIGTERM, end)
    says.send("ready")
    time.sleep(600)


def stubborn(says: Connection) -> None:
    """Ends for SIGKILL only."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    says.send("ready")
    time.sleep(600)


def parent_of_stubborn(says: Connection) -> None:
    """Has a child of its own that ends for SIGKILL only, and says its id."""
    grandchild = Child.start("stubborn")
    says.send("ready")
    says.send(grandchild.process.pid)
    time.sleep(600)


def watching(says: Connection) -> None:
    """Watches its parent, asked twice, and has a child of its own; says its threads' names and the child's id."""
    from engine.orphan import obey_parent_process

    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    obey_parent_process()
    obey_parent_process()
    grandchild = Child.start("stubborn")
    says.send("ready")
    says.send(([thread.name for thread in threading.enumerate()], grandchild.process.pid))
    time.sleep(600)


def undisturbed(says: Connection) -> None:
    """Leaves signals to its parent, and says so after an interrupt."""
    from engine.orphan import obey_parent_process

    obey_parent_process()
    says.send("ready")
    signal.raise_signal(signal.SIGINT)
    says.send("undisturbed")
    time.sleep(600)


def own_a_watching_child() -> None:
    """The main program of a service: starts `watching`, prints what it knows of it, and waits."""
    child = Child.start("watching")
    threads, grandchild = child.hear()
    print(child.process.pid, grandchild, *threads, flush=True)
    time.sleep(600)
