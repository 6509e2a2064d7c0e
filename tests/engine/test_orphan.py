"""An engine process ends with the service that owns it, however that ends, and not before."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from engine.orphan import obey_parent_process
from tests.engine.children import Child, has_ended

PROGRAM = "from tests.engine.children import own_a_watching_child as main; main()"
# The promise is 30 s; the watcher looks several times a second.
GONE_SECONDS = 10.0


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[str]]:
    """The main program of a service, which starts a child that watches it."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as owner:
        yield owner
        owner.kill()


def test_the_family_ends_with_its_owner(owner: subprocess.Popen[str]) -> None:
    """SIGKILL of the owner: its child and the child's own are gone within seconds; R14."""
    assert owner.stdout is not None
    child, grandchild, *threads = owner.stdout.readline().split()
    family = psutil.Process(owner.pid).children(recursive=True)
    assert {int(child), int(grandchild)} <= {process.pid for process in family}
    owner.kill()
    deadline = time.monotonic() + GONE_SECONDS
    while (survivors := [process for process in family if not has_ended(process.pid)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    for process in survivors:
        process.kill()
    assert survivors == []
    # Asked twice, the child watched once.
    assert threads == ["MainThread", "onestep-parent-watcher"]


def test_a_main_process_watches_nobody() -> None:
    """The service itself, which `multiprocessing` did not start, has no parent to end with."""
    before = threading.active_count()
    obey_parent_process()
    assert threading.active_count() == before


def test_an_interrupt_is_for_the_parent(start: Callable[[str], Child]) -> None:
    """Ctrl-C in a terminal reaches the engine too, which must go on until the service has answered; R8."""
    assert start("undisturbed").hear() == "undisturbed"


def test_a_main_process_keeps_its_signals() -> None:
    """The service itself has nobody to leave them to."""
    before = signal.getsignal(signal.SIGINT)
    obey_parent_process()
    assert signal.getsignal(signal.SIGINT) is before
