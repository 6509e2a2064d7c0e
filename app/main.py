"""The composition root: the only module that names concrete classes and puts them together."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
from fastapi import FastAPI
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request

from app import __version__
from app.admission import Admission
from app.canvas.errors import CanvasError
from app.canvas.plan import Planner
from app.decisions import DecisionRequest, DecisionService, Defaults, ServedModel
from app.errors import RequestRejected, ServiceError
from app.fingerprint import fingerprint
from app.lifecycle import Lifecycle, Phase
from app.logging import log
from app.metrics import Metrics
from app.middleware import RequestBoundary
from app.problems import answer_problem, row_of
from app.routers import decide, health
from app.routers import metrics as metrics_route
from app.routers.state import Serving, State
from app.settings import Settings
from app.tokenizer import CheckpointTokenizer
from engine.protocol import Engine, EngineError, EngineInfo
from engine.settings import EngineSettings
from engine.weights import locate_checkpoint

EngineFactory = Callable[[EngineSettings], Engine]
# Called with the phase in which it failed when this process can never serve again; the owner of the process ends it.
OnFailure = Callable[[Phase], None]

WATCH_SECONDS = 1.0

# A real decision that must succeed before anybody else's is served.
FIRST_DECISION = DecisionRequest(
    state="Is this service ready?",
    rubric={
        "type": "object",
        "properties": {"ready": {"type": "boolean", "title": "Is somebody asking whether the service is ready?"}},
    },
)


def make_engine(settings: Settings) -> EngineFactory:
    """The engine the settings name."""
    if settings.engine == "fake":
        from engine.fake import FakeEngine

        return lambda engine_settings: FakeEngine(settings=engine_settings)
    from engine.vllm_engine import VllmEngine

    return VllmEngine


def engine_settings(settings: Settings) -> EngineSettings:
    """The part of the settings that is the engine's."""
    return EngineSettings(
        checkpoint=settings.checkpoint,
        name=settings.model_name,
        revision=settings.revision,
        dtype=settings.dtype,
        canvas_length=settings.canvas_length,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        max_batched_tokens=settings.max_batched_tokens,
        kv_cache_gib=settings.kv_cache_gib,
        block_size=settings.block_size,
    )


def create_app(settings: Settings, engine_factory: EngineFactory, on_failure: OnFailure = lambda _: None) -> FastAPI:
    """The application. Pure: nothing is started before its lifespan is entered.

    The socket is open while the engine loads, so that `/health` can say so; `/decide` answers 503 until then.
    """
    metrics = Metrics()
    lifecycle = Lifecycle()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        serving = Serving()
        engine = engine_factory(engine_settings(settings))
        start = Startup(settings, engine, serving, lifecycle, metrics)
        supervisor = asyncio.create_task(_supervise(start, on_failure), name="engine supervisor")
        try:
            yield State(settings=settings, lifecycle=lifecycle, metrics=metrics, serving=serving)
        finally:
            if lifecycle.phase is not Phase.FAILED:
                lifecycle.enter(Phase.DRAINING)
            supervisor.cancel()
            await engine.close()
            with suppress(asyncio.CancelledError):
                await supervisor
            lifecycle.enter(Phase.STOPPED)

    app = FastAPI(title="Onestep", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.add_middleware(RequestBoundary, metrics=metrics)
    for router in (decide.router, health.router, metrics_route.router):
        app.include_router(router)
    for kind in (ServiceError, CanvasError, EngineError, HTTPException):
        app.add_exception_handler(kind, _Refusal(metrics))
    return app


class _Refusal:
    """Answers an error with its problem document, and counts it."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, request: Request, error: Exception) -> JSONResponse:
        row = row_of(error)
        if row.status >= 500 and not isinstance(error, ServiceError):
            log(logging.ERROR, "request failed", error=error, request_id=request.scope["onestep.request_id"])
        if isinstance(error, RequestRejected | CanvasError | ServiceError):
            self._metrics.rejected.labels(row.code).inc()
        return answer_problem(request, error)


class Startup:
    """Brings the service up: tokenizer, engine, first decision."""

    def __init__(
        self, settings: Settings, engine: Engine, serving: Serving, lifecycle: Lifecycle, metrics: Metrics
    ) -> None:
        self._settings = settings
        self.engine = engine
        self._serving = serving
        self.lifecycle = lifecycle
        self._metrics = metrics

    async def run(self) -> None:
        """Leave the service READY.

        Raises:
            UnfitTokenizer, EngineStartFailed: it cannot be.
        """
        planner = await asyncio.to_thread(self._planner)
        info = await self.engine.start()
        service = self._service(planner, info)
        await service.decide_unguarded(FIRST_DECISION)
        _freeze_heap()
        self.lifecycle.enter(Phase.READY)
        log(
            logging.INFO,
            "ready",
            seconds=round(time.time() - psutil.Process().create_time(), 1),
            model=info.model,
            dtype=info.dtype,
            fingerprint=fingerprint(info),
        )

    def _planner(self) -> Planner:
        settings = self._settings
        folder: Path = locate_checkpoint(settings.checkpoint, settings.revision)
        planner = Planner(
            tokenizer=CheckpointTokenizer.from_checkpoint(folder),
            max_model_len=settings.max_model_len,
            canvas_length=settings.canvas_length,
            max_text_chars=settings.rubric_text_chars,
        )
        assert planner.limits.max_questions  # found now, not at the first request
        return planner

    def _service(self, planner: Planner, info: EngineInfo) -> DecisionService:
        settings, serving = self._settings, self._serving
        serving.info, serving.fingerprint = info, fingerprint(info)
        serving.service = DecisionService(
            engine=self.engine,
            planner=planner,
            model=ServedModel(name=info.model, fingerprint=serving.fingerprint),
            defaults=Defaults(entropy_threshold=settings.entropy_threshold, deadline_seconds=settings.deadline_seconds),
            admission=Admission(settings.max_inflight),
            lifecycle=self.lifecycle,
            metrics=self._metrics,
            cached_plans=settings.rubric_cache_entries,
        )
        return serving.service


def _freeze_heap() -> None:
    """Take what start-up made out of the garbage collector's sight: a full pass over it holds requests up."""
    gc.collect()
    gc.freeze()


async def _supervise(start: Startup, on_failure: OnFailure) -> None:
    """Start the service, then watch the engine for as long as it lives."""
    try:
        await start.run()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            await start.engine.check()
    except Exception as error:
        # An operator reads why it could not start; these messages are ours and quote no request.
        reason = str(error) if isinstance(error, EngineError | CanvasError) else type(error).__name__
        phase = start.lifecycle.phase
        log(logging.ERROR, "engine failed", error=error, reason=reason, phase=phase.value)
        start.lifecycle.enter(Phase.FAILED)
        on_failure(phase)
