"""An engine process must not outlive the service that owns it, nor stop before it.

The service stops its engine when it can. When it cannot (SIGKILL, the out-of-memory killer) nobody tells the engine:
vLLM 0.32.0's workers watch the EngineCore process, but the EngineCore does not watch the process that started it, and
while it starts it waits five minutes for an answer. So it watches from its first moment, in `app.__main__`, which
`multiprocessing` imports again there; where another program owns the engine, from the plugin.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.process import parent_process

WATCH_SECONDS = 0.2

_WATCHER_NAME = "onestep-parent-watcher"


def obey_parent_process() -> None:
    """`obey_parent` in a process that `multiprocessing` has started; nothing in any other."""
    parent = parent_process()
    if parent is not None and parent.pid is not None:
        obey_parent(parent.pid)


def obey_parent(pid: int) -> None:
    """End this process as soon as the parent with this id is gone, and leave SIGINT to the parent. Idempotent.

    Ctrl-C reaches the whole group, and the service stops its engine itself, after it has answered what it accepted.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not any(thread.name == _WATCHER_NAME for thread in threading.enumerate()):
        threading.Thread(target=_end_with, args=(pid,), name=_WATCHER_NAME, daemon=True).start()


def _end_with(parent_pid: int) -> None:
    # An orphan is given another parent. `multiprocessing` has a handle to wait on, but not yet while it imports.
    while os.getppid() == parent_pid:
        time.sleep(WATCH_SECONDS)
    for child in multiprocessing.active_children():
        child.kill()
    # Nobody is left to answer to, and a Python-level exit could wait for threads that wait for the parent.
    os.kill(os.getpid(), signal.SIGKILL)
