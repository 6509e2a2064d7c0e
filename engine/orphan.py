"""An engine process must not outlive the service that owns it, nor stop before it.

The service stops its engine when it can. When it cannot (SIGKILL, the out-of-memory killer) nobody tells the engine:
vLLM 0.32.0's workers watch the EngineCore process, but the EngineCore does not watch the process that started it. So it
watches here, from the plugin, which vLLM loads in every process.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing import connection
from multiprocessing.process import parent_process

_WATCHER_NAME = "onestep-parent-watcher"


def leave_signals_to_parent() -> None:
    """In a process that `multiprocessing` started, ignore SIGINT: Ctrl-C reaches the whole group, and the service stops
    its engine itself, after it has answered what it accepted."""
    if parent_process() is not None and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def watch_parent() -> None:
    """In a process that `multiprocessing` started, end this process as soon as its parent is gone. Idempotent."""
    parent = parent_process()
    if parent is None or any(thread.name == _WATCHER_NAME for thread in threading.enumerate()):
        return
    threading.Thread(target=_exit_with, args=(parent.sentinel,), name=_WATCHER_NAME, daemon=True).start()


def _exit_with(sentinel: int) -> None:
    connection.wait([sentinel])
    for child in multiprocessing.active_children():
        child.kill()
    # Nobody is left to answer to, and a Python-level exit could wait for threads that wait for the parent.
    os.kill(os.getpid(), signal.SIGKILL)
