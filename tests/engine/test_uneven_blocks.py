"""Where KV blocks differ in size between layers, as in the real model: bundles begin where every layer's blocks do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine.protocol import ReadRequest, ReadResult
from tests.checkpoints import write_random_checkpoint
from tests.engine.conftest import running
from tests.engine.reads import ReadMaker, normalised
from tests.engine.running import RunningEngine
from tests.reference import HuggingFaceReference

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")]

# float32 on both sides, another order of sums, and logits that deviate by 5.
TOLERANCE = 1e-3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Path:
    """A random checkpoint whose sliding layers need twice the room of its full ones."""
    folder = tmp_path_factory.mktemp("checkpoints") / "uneven"
    write_random_checkpoint(folder, tokenizer_folder=checkpoint, with_vision=False, sliding_kv_heads=4)
    return folder


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[RunningEngine]:
    """An engine of it with fused reads."""
    with running(folder, max_model_len=2048, max_batched_tokens=2048, bundle_tokens=1500) as engine:
        yield engine


def expected(reference: HuggingFaceReference, request: ReadRequest) -> list[list[float]]:
    """Normalised logprobs of every slot of every branch, by Hugging Face's model."""
    slots = []
    for branch in request.branches:
        prompt = request.prompt_token_ids + branch.suffix_token_ids
        logits = reference.slot_logits(prompt, branch.canvas_token_ids).astype(np.float64)
        slots += [normalised(logits[s.position, list(s.label_token_ids)].tolist()) for s in branch.canvas_slots]
    return slots


def found(result: ReadResult) -> list[list[float]]:
    """The same of what the engine read."""
    return [normalised(slot) for branch in result.branch_logprobs for slot in branch]


def test_blocks_are_uneven(engine: RunningEngine) -> None:
    """Twice what was asked for: the engine has noticed what vLLM made of it."""
    assert engine.engine.settings.block_size == 32
    assert engine.engine._block_tokens == 64


def test_bundles_equal_the_reference(engine: RunningEngine, folder: Path) -> None:
    """Every branch, cold and warm, at prompt lengths on and off both sizes of block."""
    reference = HuggingFaceReference.from_checkpoint(folder)
    maker = ReadMaker(11)
    for prompt_tokens in (1, 31, 32, 33, 63, 64, 65, 96, 97, 190, 256, 300):
        request = maker.read(prompt_tokens, (7, 9), (0, 33), (60, 1), (31, 32), (0, 5))
        for result in engine.read_one_by_one([request, request]):
            assert len(result.engine_steps) == 1
            assert np.abs(np.array(flat(found(result))) - flat(expected(reference, request))).max() < TOLERANCE


def flat(slots: list[list[float]]) -> list[float]:
    """All of them in a row."""
    return [logprob for slot in slots for logprob in slot]
