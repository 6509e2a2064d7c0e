"""vLLM's own server, started for a measurement with the checkpoint, sizes and threads of ours."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from app.startup import engine_settings
from bench.engines import EngineOptions
from bench.own_service import free_port, running_service
from engine.cpu import model_threads, usable_cpus
from engine.settings import engine_arguments, engine_environment

MODULE = "vllm.entrypoints.openai.api_server"
SHARED = ("dtype", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "block_size")


@contextmanager
def vllm_service(options: EngineOptions) -> Iterator[str]:
    """Its URL, for the length of the context. It schedules as it does without us; kernels are the plugin's, for it has
    none for this model on CPU."""
    settings = options.settings()
    ours = engine_arguments(engine_settings(settings, options.checkpoint()), options.dtype)
    sizes = [part for name in SHARED for part in (f"--{name.replace('_', '-')}", str(ours[name]))]
    more = ["--enable-prefix-caching", "--enforce-eager", "--max-logprobs", "128", "--host", "127.0.0.1"]
    canvas = ["--diffusion-config", json.dumps({"canvas_length": settings.canvas_length})]
    named = ["--model", ours["model"], "--served-model-name", settings.model_name]
    environment = {**os.environ, **engine_environment(settings.kv_cache_gib or 1, model_threads(usable_cpus()))}
    command = [sys.executable, "-m", MODULE, *named, *sizes, *more, *canvas]
    port = free_port()
    with running_service([*command, "--port", str(port)], environment, port) as url:
        yield url
