"""What an engine is started with, and how that is said to vLLM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from engine.checkpoint import Checkpoint
from engine.cpu import ModelThreads

Dtype = Literal["auto", "bfloat16", "float32"]

SMALL_KV_CACHE_GIB, LARGE_KV_CACHE_GIB = 1, 8

# The keys of ours in vLLM's `additional_config`, which reaches every process of the engine.
FUSED_READS, CANVAS_LENGTH = "onestep_fused_reads", "onestep_canvas_length"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Everything an engine needs to know before it starts.

    Attributes:
        checkpoint: what to serve.
        name: what the model is called in answers.
        canvas_length: widest canvas of a read, in tokens.
        fused_reads: prompt and canvas in one engine step, and reads that share a prompt in one engine request.
        bundle_tokens: widest bundle behind its shared prompt, in tokens, where reads are fused.
        max_model_len: prompt plus canvas or bundle, in tokens.
        max_num_seqs: reads in one engine step.
        max_batched_tokens: tokens in one engine step.
        kv_cache_gib: memory for the KV cache, in whole GiB; None: by the size of the checkpoint.
        block_size: tokens in a KV block; prefix-cache hits come in whole blocks.
    """

    checkpoint: Checkpoint
    name: str
    dtype: Dtype
    canvas_length: int
    fused_reads: bool
    bundle_tokens: int
    max_model_len: int
    max_num_seqs: int
    max_batched_tokens: int
    kv_cache_gib: int | None
    block_size: int

    @property
    def draft_tokens(self) -> int:
        """The width vLLM serves as its canvas: room for one canvas and, where reads are fused, for a bundle."""
        return max(self.canvas_length, min(self.bundle_tokens, self.max_model_len - 1) if self.fused_reads else 0)


def choose_kv_cache_gib(settings: EngineSettings, weight_bytes: int) -> int:
    """Memory for the KV cache: as set, else little for a small checkpoint and several full contexts for a large one."""
    if settings.kv_cache_gib is not None:
        return settings.kv_cache_gib
    return SMALL_KV_CACHE_GIB if weight_bytes < 1 << 30 else LARGE_KV_CACHE_GIB


def engine_arguments(settings: EngineSettings, dtype: str) -> dict[str, Any]:
    """Arguments of vLLM's `AsyncEngineArgs`."""
    return {
        "model": str(settings.checkpoint.folder),
        # What `vllm:*` metrics are labelled with; by default it would be the folder's path.
        "served_model_name": settings.name,
        # The service tokenises; vLLM never sees text.
        "skip_tokenizer_init": True,
        "dtype": dtype,
        "max_model_len": settings.max_model_len,
        "max_num_seqs": settings.max_num_seqs,
        "max_num_batched_tokens": settings.max_batched_tokens,
        "enable_prefix_caching": True,
        # Densely: by default vLLM keeps of sliding layers only the end of a prompt, so a rubric or a state longer than
        # the window, followed by something else each time, would be found from the third request on and not before.
        "prefix_cache_retention_interval": None,
        "block_size": settings.block_size,
        "diffusion_config": {"canvas_length": settings.draft_tokens},
        "additional_config": {FUSED_READS: settings.fused_reads, CANVAS_LENGTH: settings.canvas_length},
        "scheduler_cls": "engine.scheduler.CanvasScheduler",
        "async_scheduling": False,
        # Compiled code is compiled again for shapes it has not seen, for seconds, while a caller waits.
        "enforce_eager": True,
        "enable_log_requests": False,
        "disable_log_stats": False,
        "trust_remote_code": False,
        "use_tqdm_on_load": False,
    }


def engine_environment(kv_cache_gib: int, threads: ModelThreads) -> dict[str, str]:
    """Environment that vLLM and its processes must run under. It overrules what the operator's shell has set.

    The log level is pinned: at DEBUG vLLM logs prompts (vllm-project/vllm#26713).
    """
    return {
        "VLLM_PLUGINS": "onestep",
        "VLLM_USE_V2_MODEL_RUNNER": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gib),
        "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, threads.pinned_cpus)) or "nobind",
        "OMP_NUM_THREADS": str(threads.count),
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_CONFIGURE_LOGGING": "1",
        "VLLM_LOGGING_CONFIG_PATH": "",
        "VLLM_LOGGING_STREAM": "ext://sys.stdout",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        # vLLM compiles a few sampler functions even in eager mode, again for every new shape.
        "TORCHDYNAMO_DISABLE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        # Messages of libraries that no operator can act on.
        "TRANSFORMERS_VERBOSITY": "error",
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "TORCH_LOGS": "-all",
        "PYTHONWARNINGS": "ignore::FutureWarning",
    }
