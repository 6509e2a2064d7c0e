"""Engines started for a measurement, and stopped after it."""

from __future__ import annotations

import gc
from argparse import ArgumentParser, Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Literal, get_args

from app.canvas.plan import Planner
from app.settings import Settings
from app.startup import engine_settings, freeze_heap, make_planner
from engine.checkpoint import Checkpoint, locate_checkpoint
from engine.protocol import Engine
from engine.vllm_engine import VllmEngine

BenchDtype = Literal["float32", "bfloat16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """What the commands that start engines are told of them.

    Attributes:
        model: a checkpoint folder; empty: the demo.
    """

    model: str
    dtype: BenchDtype

    @classmethod
    def of(cls, arguments: Namespace) -> EngineOptions:
        """From the command line."""
        return cls(model=arguments.model, dtype=arguments.dtype)

    def settings(self) -> Settings:
        """The service's settings, those that decide a read's cost written out: a new default must not move a result."""
        return Settings(
            model=self.model,
            dtype=self.dtype,
            max_model_len=4096,
            canvas_length=64,
            max_num_seqs=16,
            max_batched_tokens=8192,
            kv_cache_gib=1,
            block_size=32,
            bundle_tokens=2048,
        )

    def checkpoint(self) -> Checkpoint:
        """What is measured."""
        return locate_checkpoint(self.settings().checkpoint, None)

    def planner(self) -> Planner:
        """Lays requests out as the service does."""
        return make_planner(self.settings(), self.checkpoint())


def add_engine_options(parser: ArgumentParser) -> None:
    """Declare what `EngineOptions` reads."""
    parser.add_argument("--model", default="", help="a checkpoint folder; default: the demo")
    parser.add_argument("--dtype", default="float32", choices=get_args(BenchDtype), help="default: float32")


@asynccontextmanager
async def running_engine(options: EngineOptions, *, fused: bool) -> AsyncIterator[Engine]:
    """An engine that is up and warm."""
    settings = replace(options.settings(), fused_reads=int(fused))
    engine = VllmEngine(engine_settings(settings, options.checkpoint()))
    try:
        await engine.start()
        freeze_heap()  # as the service does once it is up
        yield engine
    finally:
        gc.unfreeze()
        await engine.close()
