"""Fixtures of the benches' tests: no vLLM, the fake engine answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from app.startup import engine_settings
from bench.arms import EnginePair
from bench.engines import EngineOptions
from engine.fake import FakeEngine

MakeFake = Callable[[bool], FakeEngine]


@pytest.fixture
def make_fake() -> MakeFake:
    """Makes fake engines with fused reads or without, of the settings that benches use."""
    options = EngineOptions(model="", dtype="float32")

    def make(fused: bool) -> FakeEngine:
        settings = dataclasses.replace(options.settings(), fused_reads=int(fused))
        return FakeEngine(settings=engine_settings(settings, options.checkpoint()))

    return make


@pytest.fixture
def engines(make_fake: MakeFake) -> EnginePair:
    """A pair of fakes."""
    return EnginePair(fused=make_fake(True), two_step=make_fake(False))
