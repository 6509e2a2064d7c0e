"""The scheduler's count: which engine steps each read took part in, against vLLM's real scheduler without a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from engine.checkpoint import Checkpoint
from engine.cpu import ModelThreads
from engine.settings import EngineSettings, engine_arguments, engine_environment

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

CANVAS_LENGTH = 16
BLOCK_SIZE = 32


@pytest.fixture(scope="module")
def vllm_config(applied: tuple[str, ...], checkpoint: Path) -> Iterator[Any]:
    """vLLM's configuration of the demo checkpoint, made as the engine makes it."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    assert applied
    settings = EngineSettings(
        checkpoint=Checkpoint(folder=checkpoint, revision=""),
        name="demo",
        dtype="float32",
        canvas_length=CANVAS_LENGTH,
        max_model_len=256,
        max_num_seqs=2,
        max_batched_tokens=64,
        kv_cache_gib=1,
        block_size=BLOCK_SIZE,
    )
    with mock.patch.dict(os.environ, engine_environment(1, ModelThreads(count=1, pinned_cpus=()))):
        config = AsyncEngineArgs(**engine_arguments(settings, "float32")).create_engine_config()
        config.cache_config.num_gpu_blocks = 100
        yield config


@pytest.fixture
def scheduler(vllm_config: Any) -> Any:
    """The scheduler class that vLLM takes from our arguments, over one layer's KV cache."""
    import torch
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import init_none_hash
    from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
    from vllm.v1.structured_output import StructuredOutputManager

    init_none_hash(sha256)
    layer = FullAttentionSpec(block_size=BLOCK_SIZE, num_kv_heads=1, head_size=8, dtype=torch.float32)
    return vllm_config.scheduler_config.get_scheduler_cls()(
        vllm_config=vllm_config,
        kv_cache_config=KVCacheConfig(100, [], [KVCacheGroupSpec(["layer"], layer)]),
        structured_output_manager=StructuredOutputManager(vllm_config),
        block_size=BLOCK_SIZE,
        log_stats=True,
    )


def read(request_id: str, prompt_tokens: int) -> Any:
    """A read as the engine sends it, with a prompt like no other's."""
    from vllm import SamplingParams
    from vllm.utils.hashing import sha256
    from vllm.v1.core.kv_cache_utils import get_request_block_hasher
    from vllm.v1.request import Request

    extra = {
        "diffusion_seed_canvas": [5] * CANVAS_LENGTH,
        "diffusion_canvas_length": CANVAS_LENGTH,
        "diffusion_max_steps": 1,
        "diffusion_read_only": True,
    }
    params = SamplingParams(max_tokens=CANVAS_LENGTH, extra_args=extra)
    hasher = get_request_block_hasher(BLOCK_SIZE, sha256)
    return Request(request_id, [ord(request_id)] * prompt_tokens, params, None, block_hasher=hasher)


def finish(scheduler: Any, planned: Any) -> dict[str, Any]:
    """End a planned step, as a model that settles every canvas at once; what came with the reads it finished."""
    from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput

    ids = list(planned.num_scheduled_tokens)
    sampled = [[7] * len(planned.scheduled_spec_decode_tokens.get(request_id, [])) for request_id in ids]
    result = ModelRunnerOutput(
        req_ids=ids, req_id_to_index={r: i for i, r in enumerate(ids)}, sampled_token_ids=sampled
    )
    outputs = scheduler.update_from_output(planned, result)
    scheduler.update_draft_token_ids(DraftTokenIds(ids, [[7] * CANVAS_LENGTH for _ in ids]))
    finished = [output for client in outputs.values() for output in client.outputs if output.finish_reason is not None]
    return {output.request_id: output.kv_transfer_params for output in finished}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Reads by the engine step before which they arrive, with their prompts' lengths; the steps each takes part in."""

    id: str
    arrivals: dict[int, dict[str, int]]
    expected: dict[str, list[int]]


CASES = [
    Case(id="prompt, then canvas", arrivals={1: {"a": 20}}, expected={"a": [1, 2]}),
    Case(id="together", arrivals={1: {"a": 20, "b": 30}}, expected={"a": [1, 2], "b": [1, 2]}),
    Case(id="one step later", arrivals={1: {"a": 20}, 2: {"b": 30}}, expected={"a": [1, 2], "b": [2, 3]}),
    Case(id="prompt in two chunks", arrivals={1: {"a": 100}}, expected={"a": [1, 2, 3]}),
    Case(
        id="more than fit",
        arrivals={1: {"a": 20, "b": 20, "c": 20}},
        expected={"a": [1, 2], "b": [1, 2], "c": [3, 4]},
    ),
    Case(id="idle steps do not count", arrivals={1: {"a": 20}, 6: {"b": 20}}, expected={"a": [1, 2], "b": [3, 4]}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_engine_steps(scheduler: Any, case: Case) -> None:
    """Each read's last output carries the index and the duration of every step it took part in."""
    from engine.scheduler import STEPS_KEY

    steps: dict[str, list[tuple[int, float]]] = {}
    for index in range(1, 10):
        for request_id, prompt_tokens in case.arrivals.get(index, {}).items():
            scheduler.add_request(read(request_id, prompt_tokens))
        steps |= {
            request_id: params[STEPS_KEY] for request_id, params in finish(scheduler, scheduler.schedule()).items()
        }
    assert {request_id: [index for index, _ in steps[request_id]] for request_id in steps} == case.expected
    # One step, one duration, for whoever was in it.
    durations = dict(step for read_steps in steps.values() for step in read_steps)
    assert all(0 < durations[index] == seconds for read_steps in steps.values() for index, seconds in read_steps)
    assert scheduler._steps_of_request == {}


@pytest.mark.parametrize("when", ["between steps", "during a step"])
def test_an_aborted_read_leaves_nothing(scheduler: Any, when: str) -> None:
    """Neither its steps nor itself; the read beside it is none the wiser; R16."""
    from vllm.v1.request import RequestStatus

    from engine.scheduler import STEPS_KEY

    scheduler.add_request(read("a", 20))
    scheduler.add_request(read("b", 20))
    finish(scheduler, scheduler.schedule())
    planned = scheduler.schedule() if when == "during a step" else None
    scheduler.finish_requests("a", RequestStatus.FINISHED_ABORTED)
    finished = finish(scheduler, planned or scheduler.schedule())
    assert [index for index, _ in finished.pop("b")[STEPS_KEY]] == [1, 2]
    assert finished == {}
    assert scheduler._steps_of_request == {}
    assert scheduler.requests == {}
