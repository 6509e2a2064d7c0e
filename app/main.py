"""The composition root: the only module that names concrete classes and puts them together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from app import __version__
from app.canvas.errors import CanvasError
from app.errors import ServiceError
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from app.middleware import RequestBoundary
from app.problems import ProblemHandler
from app.routers import decide, health, metrics, rubrics
from app.serving import Serving, State
from app.settings import Settings
from app.startup import EngineFactory, OnFailure, Startup
from engine.protocol import EngineError


def make_engine(settings: Settings) -> EngineFactory:
    """The engine the settings name."""
    if settings.engine == "fake":
        from engine.fake import FakeEngine

        return lambda engine_settings: FakeEngine(settings=engine_settings)
    from engine.vllm_engine import VllmEngine

    return VllmEngine


def create_app(settings: Settings, engine_factory: EngineFactory, on_failure: OnFailure = lambda _: None) -> FastAPI:
    """The application. Pure: nothing is started before its lifespan is entered.

    The socket is open while the engine loads, so that `/health` can say so; `/decide` answers 503 until then.
    """
    collectors = Metrics()
    lifecycle = Lifecycle()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        state = State(settings=settings, lifecycle=lifecycle, metrics=collectors, serving=Serving())
        startup = Startup(state, engine_factory)
        supervisor = asyncio.create_task(startup.supervise(on_failure), name="engine supervisor")
        try:
            yield state
        finally:
            if lifecycle.phase is not Phase.FAILED:
                lifecycle.enter(Phase.DRAINING)
            supervisor.cancel()
            await startup.close()
            with suppress(asyncio.CancelledError):
                await supervisor
            lifecycle.enter(Phase.STOPPED)

    app = FastAPI(
        title="Onestep",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(RequestBoundary, metrics=collectors)
    for route in (decide, rubrics, health, metrics):
        app.include_router(route.router)
    for kind in (ServiceError, CanvasError, EngineError, HTTPException):
        app.add_exception_handler(kind, ProblemHandler(collectors))
    return app
