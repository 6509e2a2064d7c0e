"""The training network computes what Hugging Face's model computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bench.demo.checkpoint import write_weights
from bench.demo.network import Batch, Network, NetworkSizes
from tests.reference import HuggingFaceReference

TOLERANCE = 1e-3
SIZES = NetworkSizes(vocabulary=300, hidden=64, layers=3, mlp=96, expert_mlp=16)


@pytest.fixture(scope="module")
def network() -> Network:
    """A network in which no weight has the value it starts with."""
    torch.manual_seed(0)
    made = Network(SIZES, torch.randn(SIZES.vocabulary, 20))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(torch.rand_like(parameter).add(0.5))
    made.eval()
    return made


def batch_of(reads: list[tuple[list[int], list[int]]]) -> Batch:
    """Prompts and canvases, padded; every canvas position is a slot."""
    prompt_width, canvas_width = (max(len(read[part]) for read in reads) for part in (0, 1))
    ids = torch.zeros(len(reads), prompt_width + canvas_width, dtype=torch.long)
    positions = torch.zeros_like(ids)
    slots = [(n, prompt_width + i) for n, (_, canvas) in enumerate(reads) for i in range(len(canvas))]
    for n, (prompt, canvas) in enumerate(reads):
        ids[n, : len(prompt)] = torch.tensor(prompt)
        ids[n, prompt_width : prompt_width + len(canvas)] = torch.tensor(canvas)
        positions[n, :prompt_width] = torch.arange(prompt_width)
        positions[n, prompt_width:] = len(prompt) + torch.arange(canvas_width)
    rows, columns = zip(*slots, strict=True)
    return Batch(
        token_ids=ids,
        positions=positions,
        prompt_tokens=torch.tensor([len(prompt) for prompt, _ in reads]),
        canvas_tokens=torch.tensor([len(canvas) for _, canvas in reads]),
        prompt_width=prompt_width,
        slot_reads=torch.tensor(rows),
        slot_columns=torch.tensor(columns),
        is_causal=torch.zeros(len(reads), dtype=torch.bool),
    )


def test_equal_to_the_reference(network: Network, tmp_path: Path) -> None:
    """Reads of different lengths in one batch, padded, give what each gives alone in Hugging Face's model."""
    write_weights(network, tmp_path, torch.float32)
    reference = HuggingFaceReference.from_checkpoint(tmp_path)
    random = np.random.default_rng(1)
    sizes = ((1, 4), (40, 9), (120, 16), (7, 16))
    reads = [tuple(random.integers(0, 300, size).tolist() for size in pair) for pair in sizes]
    with torch.no_grad():
        logits = network(batch_of([(prompt, canvas) for prompt, canvas in reads])).logits.numpy()
    start = 0
    for prompt, canvas in reads:
        expected = reference.slot_logits(prompt, canvas)
        assert logits[start : start + len(canvas)] == pytest.approx(expected, abs=TOLERANCE)
        assert expected.std() > 10 * TOLERANCE
        start += len(canvas)
