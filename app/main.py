"""The composition root: the only module that names concrete classes and puts them together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from app import __version__
from app.access import Access
from app.admission import Admission
from app.authentication import Authentication
from app.canvas.errors import CanvasError
from app.errors import ServiceError
from app.lifecycle import Lifecycle, Phase
from app.metrics import Metrics
from app.middleware import RequestBoundary
from app.problems import ProblemHandler
from app.routers import decide, health, metrics, openai_decisions, rubrics, system_one
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


def make_admission(settings: Settings) -> Admission:
    """How much is served at once, as the settings have it."""
    return Admission(
        settings.max_inflight,
        tenants=len({key.tenant for key in settings.api_keys}) or 1,
        tenant_inflight=settings.tenant_inflight,
        max_tokens=settings.inflight_tokens,
        max_bytes=settings.receiving_bytes,
    )


def create_app(
    settings: Settings,
    engine_factory: EngineFactory,
    on_failure: OnFailure = lambda _: None,
    *,
    lifecycle: Lifecycle | None = None,
    admission: Admission | None = None,
) -> FastAPI:
    """The application. Pure: nothing is started before its lifespan is entered.

    The socket is open while the engine loads, so that `/health` can say so; `/decide` answers 503 until then. Who owns
    the process keeps lifecycle and admission in hand, to end it in order.
    """
    collectors = Metrics()
    lifecycle = lifecycle or Lifecycle()
    admission = admission or make_admission(settings)
    problems = ProblemHandler(collectors)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        state = State(
            settings=settings, lifecycle=lifecycle, admission=admission, metrics=collectors, serving=Serving()
        )
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
    # The last that is added is the first that sees a request.
    app.add_middleware(Authentication, access=Access(settings.api_keys), problems=problems)
    app.add_middleware(RequestBoundary, metrics=collectors, lifecycle=lifecycle)
    for route in (decide, rubrics, system_one, openai_decisions, health, metrics):
        app.include_router(route.router)
    for kind in (ServiceError, CanvasError, EngineError, HTTPException):
        app.add_exception_handler(kind, problems)
    return app
