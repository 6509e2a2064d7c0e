"""What vLLM is told: arguments it knows, and an environment that the operator's shell cannot overrule."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from engine.checkpoint import Checkpoint
from engine.cpu import ModelThreads
from engine.settings import (
    LARGE_KV_CACHE_GIB,
    SMALL_KV_CACHE_GIB,
    EngineSettings,
    choose_kv_cache_gib,
    engine_arguments,
    engine_environment,
)

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

GIB = 1 << 30
FREE = ModelThreads(count=2, pinned_cpus=())
SETTINGS = EngineSettings(
    checkpoint=Checkpoint(folder=Path("/checkpoints/some-model"), revision="r1"),
    name="some-model",
    dtype="auto",
    canvas_length=48,
    fused_reads=True,
    bundle_tokens=512,
    max_model_len=2048,
    max_num_seqs=6,
    max_batched_tokens=1024,
    kv_cache_gib=None,
    block_size=64,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A KV cache as set, the size of the weights, and the KV cache that is taken."""

    id: str
    set_gib: int | None
    weight_bytes: int
    expected: int


CASES = [
    Case(id="small checkpoint", set_gib=None, weight_bytes=GIB - 1, expected=SMALL_KV_CACHE_GIB),
    Case(id="large checkpoint", set_gib=None, weight_bytes=GIB, expected=LARGE_KV_CACHE_GIB),
    Case(id="small, as set", set_gib=5, weight_bytes=1, expected=5),
    Case(id="large, as set", set_gib=2, weight_bytes=50 * GIB, expected=2),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_choose_kv_cache_gib(case: Case) -> None:
    """As set, else by the size of the checkpoint."""
    settings = dataclasses.replace(SETTINGS, kv_cache_gib=case.set_gib)
    assert choose_kv_cache_gib(settings, case.weight_bytes) == case.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """A canvas, a bundle and a context in tokens, and the draft that has to be served, fused and not."""

    id: str
    canvas_length: int
    bundle_tokens: int
    max_model_len: int
    fused: int
    two_step: int


WIDTHS = [
    Width(id="bundle", canvas_length=48, bundle_tokens=512, max_model_len=2048, fused=512, two_step=48),
    Width(id="canvas", canvas_length=48, bundle_tokens=47, max_model_len=2048, fused=48, two_step=48),
    Width(id="both the same", canvas_length=48, bundle_tokens=48, max_model_len=2048, fused=48, two_step=48),
    Width(id="one token of prompt", canvas_length=48, bundle_tokens=2047, max_model_len=2048, fused=2047, two_step=48),
    Width(id="context", canvas_length=48, bundle_tokens=2048, max_model_len=2048, fused=2047, two_step=48),
    Width(id="far over the context", canvas_length=48, bundle_tokens=65_536, max_model_len=64, fused=63, two_step=48),
    Width(id="canvas and context", canvas_length=63, bundle_tokens=65_536, max_model_len=64, fused=63, two_step=63),
]


@pytest.mark.parametrize("case", WIDTHS, ids=lambda case: case.id)
def test_draft_tokens(case: Width) -> None:
    """Room for a canvas whatever is set for bundles, and for no draft that leaves a prompt no token."""
    settings = dataclasses.replace(
        SETTINGS,
        canvas_length=case.canvas_length,
        bundle_tokens=case.bundle_tokens,
        max_model_len=case.max_model_len,
    )
    assert settings.draft_tokens == case.fused
    assert dataclasses.replace(settings, fused_reads=False).draft_tokens == case.two_step


@dataclass(frozen=True, slots=True, kw_only=True)
class Threads:
    """Threads of the model, and how vLLM is told to bind them."""

    id: str
    threads: ModelThreads
    binding: str


THREADS = [
    Threads(id="free", threads=FREE, binding="nobind"),
    Threads(id="pinned", threads=ModelThreads(count=3, pinned_cpus=(0, 2, 14)), binding="0,2,14"),
    Threads(id="one pinned", threads=ModelThreads(count=1, pinned_cpus=(5,)), binding="5"),
]


@pytest.mark.parametrize("case", THREADS, ids=lambda case: case.id)
def test_threads(case: Threads) -> None:
    """As many as were chosen, where they were chosen to run."""
    environment = engine_environment(1, case.threads)
    assert environment["OMP_NUM_THREADS"] == str(case.threads.count)
    assert environment["VLLM_CPU_OMP_THREADS_BIND"] == case.binding


def test_the_kv_cache_is_as_large_as_chosen() -> None:
    """In the unit that vLLM takes."""
    assert engine_environment(7, FREE)["VLLM_CPU_KVCACHE_SPACE"] == "7"


def test_arguments_carry_the_settings() -> None:
    """Each limit under vLLM's name for it; the checkpoint as the folder it was found in, with the format chosen."""
    arguments = engine_arguments(SETTINGS, "float32")
    assert (
        arguments
        | {
            "model": "/checkpoints/some-model",
            "dtype": "float32",
            "max_model_len": 2048,
            "max_num_seqs": 6,
            "max_num_batched_tokens": 1024,
            "block_size": 64,
            "diffusion_config": {"canvas_length": 512},
            "additional_config": {"onestep_fused_reads": True, "onestep_canvas_length": 48},
        }
        == arguments
    )


def test_arguments_where_reads_are_not_fused() -> None:
    """vLLM serves the canvas as it is set, and every process knows that it is not to fuse."""
    arguments = engine_arguments(dataclasses.replace(SETTINGS, fused_reads=False), "float32")
    assert arguments["diffusion_config"] == {"canvas_length": 48}
    assert arguments["additional_config"] == {"onestep_fused_reads": False, "onestep_canvas_length": 48}


def test_arguments_are_safe() -> None:
    """No code from a checkpoint is run, no request is logged and no text reaches vLLM; P3, P5."""
    arguments = engine_arguments(SETTINGS, "float32")
    assert arguments["trust_remote_code"] is False
    assert arguments["enable_log_requests"] is False
    assert arguments["skip_tokenizer_init"] is True


def test_vllm_knows_the_arguments(applied: tuple[str, ...]) -> None:
    """And the scheduler is where it is said to be."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    from engine.scheduler import CanvasScheduler

    assert applied
    arguments = engine_arguments(SETTINGS, "float32")
    assert arguments.keys() <= {field.name for field in dataclasses.fields(AsyncEngineArgs)}
    assert arguments["scheduler_cls"] == f"{CanvasScheduler.__module__}.{CanvasScheduler.__qualname__}"


def test_vllm_knows_the_environment(applied: tuple[str, ...]) -> None:
    """A variable that vLLM renamed would silently have no effect."""
    from vllm import envs

    assert applied
    ours = {name for name in engine_environment(1, FREE) if name.startswith("VLLM_")}
    assert ours <= envs.environment_variables.keys()


@pytest.fixture
def logging_config(applied: tuple[str, ...]) -> Iterator[Any]:
    """How vLLM configures the logging of each of its processes, started from a shell in which it would log prompts."""
    from vllm.config import LoggingConfig

    assert applied
    hostile = {
        "VLLM_LOGGING_LEVEL": "DEBUG",
        "VLLM_CONFIGURE_LOGGING": "0",
        "VLLM_LOGGING_CONFIG_PATH": "/etc/log-everything.json",
    }
    with mock.patch.dict(os.environ, hostile | engine_environment(1, FREE)):
        yield LoggingConfig()


def test_the_log_level_is_pinned(logging_config: Any) -> None:
    """The shell can neither raise vLLM's log level nor take its loggers away from it; P3."""
    assert logging_config.log_level == "ERROR"
    assert logging_config.configure_logging is True


def test_the_logging_configuration_is_pinned(logging_config: Any) -> None:
    """A configuration file of the shell would overrule the level; P3."""
    assert not logging_config.pylogging_config_file
