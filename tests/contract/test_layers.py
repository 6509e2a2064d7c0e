"""Who loads whom, seen from outside: each case is a fresh interpreter."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from dataclasses import dataclass

import pytest

import app.canvas

CANVAS = tuple(module.name for module in pkgutil.iter_modules(app.canvas.__path__, "app.canvas."))
HEAVY = ("vllm", "torch", "transformers")
WEB = ("fastapi", "starlette", "pydantic", "prometheus_client", "httpx", "uvicorn")


def loaded_by(modules: tuple[str, ...]) -> set[str]:
    """Top-level names and our own modules that importing these leaves loaded."""
    code = f"import sys, {', '.join(modules)}; print(*sys.modules, sep='\\n')"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    return {name if name.split(".")[0] in ("app", "engine") else name.split(".")[0] for name in output}


@dataclass(frozen=True)
class Case:
    id: str
    modules: tuple[str, ...]
    never: tuple[str, ...]


CASES = (
    Case("the canvas is pure", CANVAS, (*HEAVY, *WEB, "engine", "asyncio")),
    Case("the engine's contract is types", ("engine.protocol",), (*HEAVY, *WEB, "app", "numpy")),
    Case("the fake engine needs no model", ("engine.fake", "engine.settings"), (*HEAVY, *WEB, "app")),
    Case("the service chooses its engine late", ("app.main",), (*HEAVY, "engine.vllm_engine", "engine.fake")),
)


def test_every_module_of_the_canvas_is_tried() -> None:
    """The first case below is about all of them."""
    assert {"app.canvas.rubric", "app.canvas.plan", "app.canvas.decision"} <= set(CANVAS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_importing_does_not_load(case: Case) -> None:
    """What must not be needed is not there afterwards."""
    loaded = loaded_by(case.modules)
    assert set(case.modules) <= loaded
    assert loaded & set(case.never) == set()
