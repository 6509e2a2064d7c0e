"""`python -m app`: the service's process, and the first lines that vLLM's processes run.

vLLM starts its processes with the spawn method of `multiprocessing`, which imports the main module again, under
another name. That is the earliest moment at which such a process can be told whom it belongs to; nothing else is
imported there.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__mp_main__":
    from engine.orphan import obey_parent

    obey_parent(os.getppid())

if __name__ == "__main__":
    from app.server import main

    sys.exit(main())
