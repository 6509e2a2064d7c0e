"""The life of the process: what it may do now, and what may come next.

STARTING ──> READY ──> DRAINING ──> STOPPED
    │          │
    └──────────┴──> FAILED ──> STOPPED
"""

from __future__ import annotations

from enum import StrEnum

from app.errors import Draining, EngineDead, NotServing, Starting


class Phase(StrEnum):
    """Where the process is in its life."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"
    STOPPED = "stopped"


NEXT: dict[Phase, frozenset[Phase]] = {
    Phase.STARTING: frozenset({Phase.READY, Phase.DRAINING, Phase.FAILED}),
    Phase.READY: frozenset({Phase.DRAINING, Phase.FAILED}),
    Phase.DRAINING: frozenset({Phase.STOPPED, Phase.FAILED}),
    Phase.FAILED: frozenset({Phase.STOPPED}),
    Phase.STOPPED: frozenset(),
}
REFUSALS: dict[Phase, type[NotServing]] = {
    Phase.STARTING: Starting,
    Phase.DRAINING: Draining,
    Phase.FAILED: EngineDead,
    Phase.STOPPED: Draining,
}


class Lifecycle:
    """The current phase and its legal transitions."""

    def __init__(self) -> None:
        self.phase = Phase.STARTING

    @property
    def is_ready(self) -> bool:
        """Whether requests are served: `/decide` answers 503 if and only if this is false."""
        return self.phase is Phase.READY

    def enter(self, phase: Phase) -> None:
        """Move on. Entering the current phase again changes nothing.

        Raises:
            RuntimeError: the transition does not exist.
        """
        if phase is not self.phase and phase not in NEXT[self.phase]:
            raise RuntimeError(f"no way from {self.phase} to {phase}; this is a bug")
        self.phase = phase

    def require_ready(self) -> None:
        """Raise the refusal of the current phase unless ready."""
        if not self.is_ready:
            raise REFUSALS[self.phase]
