"""Bringing the service up: checkpoint, tokenizer, engine, first decision. And watching it until it goes."""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import replace

import psutil

from app.calibration import load_temperatures
from app.canvas.errors import CanvasError, UnfitTokenizer
from app.canvas.plan import Planner
from app.canvas.site import RubricLimits
from app.canvas.tokenizer import Tokenizer
from app.checks import CheckService
from app.decisions import DecisionRequest, DecisionService, Defaults, ServedModel, read_request
from app.fingerprint import fingerprint
from app.lifecycle import Phase
from app.logging import log
from app.plans import PlanRequest, Plans
from app.pulse import WatchedEngine
from app.serving import State
from app.settings import BadSettings, Settings
from app.tokenizer import CheckpointTokenizer
from engine.checkpoint import Checkpoint, locate_checkpoint
from engine.protocol import Engine, EngineDied, EngineError, EngineInfo, ReadFailed, ReadRequest
from engine.settings import EngineSettings

EngineFactory = Callable[[EngineSettings], Engine]
# Called with the phase in which it failed when this process can never serve again; the owner of the process ends it.
OnFailure = Callable[[Phase], None]

WATCH_SECONDS = 1.0

# A real decision that must succeed before anybody else's is served.
FIRST_DECISION = DecisionRequest(
    state="Is this service ready?",
    asked=PlanRequest(
        rubric={
            "type": "object",
            "properties": {"ready": {"type": "boolean", "title": "Is somebody asking whether the service is ready?"}},
        }
    ),
)


class Startup:
    """Owns the engine from before it exists until it is closed."""

    def __init__(self, state: State, engine_factory: EngineFactory) -> None:
        self._state = state
        self._engine_factory = engine_factory
        self._engine: WatchedEngine | None = None
        # A read of the service's own, ready to be asked: nothing but the engine is needed for it.
        self._probe: ReadRequest | None = None

    async def supervise(self, on_failure: OnFailure) -> None:
        """Start the service, then watch the engine for as long as it lives."""
        lifecycle = self._state["lifecycle"]
        try:
            engine = await self.run()
            while lifecycle.phase is not Phase.FAILED:  # a request may have found the engine dead first
                await asyncio.sleep(WATCH_SECONDS)
                await engine.check()
                await self._hear(engine)
            raise EngineDied("a request found the engine dead")
        except Exception as error:
            phase = lifecycle.phase
            # An operator reads here why it could not start. These messages are ours and quote no request.
            is_ours = isinstance(error, EngineError | CanvasError | BadSettings)
            reason = str(error) if is_ours else type(error).__name__
            log(logging.ERROR, "engine failed", error=error, reason=reason, phase=phase.value)
            lifecycle.enter(Phase.FAILED)
            on_failure(phase)

    async def run(self) -> WatchedEngine:
        """Leave the service READY.

        Raises:
            BadSettings, UnfitTokenizer, EngineStartFailed: it cannot be.
        """
        settings, serving = self._state["settings"], self._state["serving"]
        serving.temperatures = load_temperatures(settings.calibration, settings.model_name)
        checkpoint = await asyncio.to_thread(locate_checkpoint, settings.checkpoint, settings.revision)
        planner = await asyncio.to_thread(make_planner, settings, checkpoint)
        self._engine = WatchedEngine(engine=self._engine_factory(engine_settings(settings, checkpoint)))
        info = await self._engine.start()
        if planner.tokenizer.vocabulary_size > info.vocabulary_size:
            raise UnfitTokenizer("the checkpoint's tokenizer has more tokens than its model")
        service = self._serve(self._engine, planner, info)
        self._probe = first_read(planner)
        await service.decide_unguarded(FIRST_DECISION)
        freeze_heap()
        self._state["lifecycle"].enter(Phase.READY)
        log(
            logging.INFO,
            "ready",
            seconds=round(time.time() - psutil.Process().create_time(), 1),
            model=info.model,
            dtype=info.dtype,
            fingerprint=serving.fingerprint,
        )
        return self._engine

    async def close(self) -> None:
        """Take the engine down, in whatever state it is."""
        gc.unfreeze()
        if self._engine is not None:
            await self._engine.close()

    async def _hear(self, engine: WatchedEngine) -> None:
        """Make sure that an engine which has answered nothing for long still answers.

        Raises:
            EngineDied: it does not.
        """
        seconds, probe = self._state["settings"].stall_seconds, self._probe
        if probe is None or engine.silent_seconds <= seconds:
            return
        try:
            async with asyncio.timeout(seconds):
                await engine.read(replace(probe, request_id=f"probe_{secrets.token_hex(12)}"))
        except ReadFailed:
            return  # that is an answer
        except TimeoutError:
            if engine.silent_seconds > seconds:  # else it has answered others meanwhile
                raise EngineDied("the engine lives but does not answer") from None

    def _serve(self, engine: Engine, planner: Planner, info: EngineInfo) -> DecisionService:
        settings, serving = self._state["settings"], self._state["serving"]
        serving.info, serving.fingerprint = info, fingerprint(info, serving.temperatures)
        plans = Plans(planner, settings.rubric_cache_entries)
        admission, lifecycle = self._state["admission"], self._state["lifecycle"]
        serving.checks = CheckService(
            plans=plans, max_reads=settings.max_reads, admission=admission, lifecycle=lifecycle
        )
        serving.service = DecisionService(
            engine=engine,
            plans=plans,
            model=ServedModel(name=info.model, fingerprint=serving.fingerprint),
            defaults=Defaults(
                entropy_threshold=settings.entropy_threshold,
                max_reads=settings.max_reads,
                deadline_seconds=settings.deadline_seconds,
                label_mass_share=settings.label_mass_share,
                temperatures=serving.temperatures,
            ),
            admission=admission,
            lifecycle=lifecycle,
            metrics=self._state["metrics"],
        )
        return serving.service


def first_read(planner: Planner) -> ReadRequest:
    """The one read of the first decision."""
    plan = planner.plan(FIRST_DECISION.asked.rubric)
    return read_request(plan, planner.seed_read(plan, str(FIRST_DECISION.state), None))


def engine_settings(settings: Settings, checkpoint: Checkpoint) -> EngineSettings:
    """The part of the settings that is the engine's."""
    return EngineSettings(
        checkpoint=checkpoint,
        name=settings.model_name,
        dtype=settings.dtype,
        canvas_length=settings.canvas_length,
        fused_reads=bool(settings.fused_reads),
        bundle_tokens=settings.bundle_tokens,
        max_model_len=settings.max_model_len,
        max_num_seqs=settings.max_num_seqs,
        max_batched_tokens=settings.max_batched_tokens,
        kv_cache_gib=settings.kv_cache_gib,
        block_size=settings.block_size,
    )


def make_planner(settings: Settings, checkpoint: Checkpoint) -> Planner:
    """A planner for a checkpoint, its labels and limits found.

    Raises:
        UnfitTokenizer: the checkpoint's tokenizer cannot spell a canvas.
    """
    planner = planner_of(settings, CheckpointTokenizer.from_checkpoint(checkpoint.folder))
    planner.prepare()
    return planner


def planner_of(settings: Settings, tokenizer: Tokenizer) -> Planner:
    """A planner for a tokenizer, as the settings have it."""
    return Planner(
        tokenizer=tokenizer,
        max_model_len=settings.max_model_len,
        canvas_length=settings.canvas_length,
        max_branch_tokens=settings.branch_tokens,
        rubric_limits=RubricLimits(
            max_questions=settings.rubric_questions,
            max_options=settings.rubric_options,
            max_text_chars=settings.rubric_text_chars,
            max_chars=settings.rubric_chars,
            max_depth=settings.rubric_depth,
            max_nodes=settings.rubric_nodes,
        ),
    )


def freeze_heap() -> None:
    """Take what start-up made out of the garbage collector's sight: a full pass over it holds requests up."""
    gc.collect()
    gc.freeze()
