"""The plugin's entry point: cheap to import, safe to repeat, loud when it fails."""

from __future__ import annotations

import logging
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

import engine
from engine import compat

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")


@pytest.mark.parametrize("module", ["engine", "engine.protocol", "engine.settings", "engine.fake"])
def test_importing_is_cheap(module: str) -> None:
    """Neither vLLM nor torch is loaded before they are needed."""
    program = f"import sys, {module}; print(sorted({{'vllm', 'torch'}} & sys.modules.keys()))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_vllm_finds_the_plugin() -> None:
    """The project is installed, with its entry point, in this environment: vLLM's processes look for it there."""
    (plugin,) = (point for point in entry_points(group="vllm.general_plugins") if point.name == "onestep")
    assert plugin.load() is engine.register


def test_registering_twice(applied: tuple[str, ...]) -> None:
    """vLLM loads plugins several times; the architecture is ours afterwards, by name, not loaded yet."""
    from vllm import ModelRegistry

    assert applied
    engine.register()
    engine.register()
    registered = ModelRegistry.models["DiffusionGemmaForBlockDiffusion"]
    assert (registered.module_name, registered.class_name) == ("engine.model", "TextDiffusionGemma")


def test_a_failure_is_logged_and_raised(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """vLLM would say only that a process ended."""

    def refuse() -> None:
        raise compat.IncompatibleVllm("another vLLM")

    monkeypatch.setattr(compat, "check_version", refuse)
    with pytest.raises(compat.IncompatibleVllm), caplog.at_level(logging.ERROR, logger="engine"):
        engine.register()
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("engine", "the onestep plugin could not be registered")
    assert record.exc_info is not None
