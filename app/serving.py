"""What the lifespan hands to every request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from app.admission import Admission
from app.canvas.question import Kind
from app.checks import CheckService
from app.decisions import DecisionService
from app.lifecycle import Lifecycle
from app.metrics import Metrics
from app.settings import Settings
from engine.protocol import EngineInfo


class Serving:
    """What exists once the engine is up; empty before."""

    def __init__(self) -> None:
        self.service: DecisionService | None = None
        self.checks: CheckService | None = None
        self.info: EngineInfo | None = None
        self.fingerprint: str | None = None
        self.temperatures: Mapping[Kind, float] = {}

    @property
    def decisions(self) -> DecisionService:
        """What decides, once the lifecycle is ready."""
        assert self.service is not None, "ready without a service; this is a bug"
        return self.service

    @property
    def model(self) -> str:
        """What answers call the model, likewise."""
        assert self.info is not None, "ready without an engine; this is a bug"
        return self.info.model


class State(TypedDict):
    """Lifespan state; Starlette copies it to `request.state`."""

    settings: Settings
    lifecycle: Lifecycle
    admission: Admission
    metrics: Metrics
    serving: Serving
