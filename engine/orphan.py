"""An engine process must not outlive the service that owns it, nor stop before it.

The service stops its engine when it can. When it cannot (SIGKILL, the out-of-memory killer) nobody tells the engine:
vLLM 0.32.0's workers watch the EngineCore process, but the EngineCore does not watch the process that started it, and
while it starts it waits five minutes for an answer, before it loads any plugin. So it is started through
`run_engine_core` below (see `engine.compat`), which watches before it does anything else.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.process import parent_process
from typing import Any

WATCH_SECONDS = 0.2

_WATCHER_NAME = "onestep-parent-watcher"


def run_engine_core(*args: Any, **kwargs: Any) -> None:
    """What vLLM's EngineCore process runs: vLLM's own function, once the parent is watched."""
    obey_parent_process()
    from vllm.v1.engine.core import EngineCoreProc

    EngineCoreProc.run_engine_core(*args, **kwargs)


def obey_parent_process() -> None:
    """End this process as soon as its parent is gone, and leave SIGINT to the parent. Idempotent.

    Does nothing in a process that `multiprocessing` did not start. Ctrl-C reaches the whole group, and the service
    stops its engine itself, after it has answered what it accepted.
    """
    parent = parent_process()
    if parent is None:
        return
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not any(thread.name == _WATCHER_NAME for thread in threading.enumerate()):
        threading.Thread(target=_end_with, args=(parent.pid,), name=_WATCHER_NAME, daemon=True).start()


def _end_with(parent_pid: int | None) -> None:
    # An orphan is given another parent, before this is called or after.
    while os.getppid() == parent_pid:
        time.sleep(WATCH_SECONDS)
    for child in multiprocessing.active_children():
        child.kill()
    # Nobody is left to answer to, and a Python-level exit could wait for threads that wait for the parent.
    os.kill(os.getpid(), signal.SIGKILL)
