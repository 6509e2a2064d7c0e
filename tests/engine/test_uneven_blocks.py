"""Where KV blocks differ in size between layers, as in the real model: bundles begin where every layer's blocks do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

from engine.packing import pack
from engine.protocol import Fallback, ReadFailed, ReadRequest, ReadResult
from engine.settings import engine_arguments
from tests.checkpoints import write_random_checkpoint
from tests.engine.conftest import running
from tests.engine.reads import ReadMaker, normalised
from tests.engine.running import RunningEngine
from tests.reference import HuggingFaceReference

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")]

# float32 on both sides, another order of sums, and logits that deviate by 5.
TOLERANCE = 1e-3
# Few more than vLLM wants for one full context.
BLOCKS = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Path:
    """A random checkpoint whose sliding layers need twice the room of its full ones."""
    folder = tmp_path_factory.mktemp("checkpoints") / "uneven"
    write_random_checkpoint(folder, tokenizer_folder=checkpoint, with_vision=False, sliding_kv_heads=4)
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[RunningEngine]:
    """An engine of it with fused reads, and so few KV blocks that what is given back is soon used again."""

    def arguments(*asked: Any) -> dict[str, Any]:
        return engine_arguments(*asked) | {"num_gpu_blocks_override": BLOCKS}

    with (
        mock.patch("engine.vllm_engine.engine_arguments", arguments),
        running(folder, max_model_len=1024, max_batched_tokens=1024, bundle_tokens=600) as engine,
    ):
        yield engine


@pytest.fixture(scope="module")
def reference(folder: Path) -> HuggingFaceReference:
    """The same checkpoint by Hugging Face."""
    return HuggingFaceReference.from_checkpoint(folder)


def expected(reference: HuggingFaceReference, request: ReadRequest) -> list[float]:
    """Normalised logprobs of every slot of every branch by Hugging Face's model, with windows as vLLM has them."""
    logprobs = []
    for branch in request.branches:
        prompt = request.prompt_token_ids + branch.suffix_token_ids
        logits = reference.slot_logits(prompt, branch.canvas_token_ids, window_each_row=True).astype(np.float64)
        for slot in branch.canvas_slots:
            logprobs += normalised(logits[slot.position, list(slot.label_token_ids)].tolist())
    return logprobs


def found(result: ReadResult) -> list[float]:
    """The same of what the engine read."""
    return [logprob for branch in result.branch_logprobs for slot in branch for logprob in normalised(slot)]


def test_blocks_are_uneven(engine: RunningEngine) -> None:
    """Twice what was asked for: the engine has noticed what vLLM made of it."""
    assert engine.engine.settings.block_size == 32
    assert engine.engine._block_tokens == 64


def test_bundles_equal_the_reference(engine: RunningEngine, reference: HuggingFaceReference) -> None:
    """Every branch, cold and warm, at prompt lengths on and off both sizes of block, to beyond the sliding window."""
    maker = ReadMaker(11)
    for prompt_tokens in (1, 31, 32, 33, 63, 64, 65, 96, 97, 190, 256, 300, 511, 600):
        request = maker.read(prompt_tokens, (7, 9), (0, 33), (60, 1), (31, 32), (0, 5))
        wanted = expected(reference, request)
        for result in engine.read_one_by_one([request, request]):
            # A bundle takes one step; two that are sent at once may share it.
            assert len(result.engine_steps) <= len(list(pack(request, engine.engine._limits())))
            assert found(result) == pytest.approx(wanted, abs=TOLERANCE)


def test_few_blocks(engine: RunningEngine, reference: HuggingFaceReference) -> None:
    """Bundles beyond the window that fall back for want of blocks or budget, are chunked, preempted and resumed."""
    maker = ReadMaker(12)
    fallbacks: set[Fallback] = set()
    for _ in range(8):
        requests = [
            maker.read(maker.random.randint(500, 760), *[(maker.random.randint(0, 12), 8)] * 3) for _ in range(5)
        ]
        for request, result in zip(requests, engine.read_together(requests), strict=True):
            fallbacks |= set(result.fallbacks)
            assert found(result) == pytest.approx(expected(reference, request), abs=TOLERANCE)
    assert fallbacks >= {Fallback.BLOCKS}
    engine.forget_prefixes()  # vLLM does so only if every block is free


def test_a_read_over_the_context_is_refused(engine: RunningEngine) -> None:
    """By an error of its own: the worker would have to cut its canvas. The engine lives on."""
    maker = ReadMaker(13)
    with pytest.raises(ReadFailed, match="longer than the context"):
        engine.read(maker.read(1020, (0, 8)))
    assert engine.read(maker.read(1016, (0, 8))).fused_reads == 1
