"""Logprobs, through vLLM's own functions: ids, ranks and masks as Triton's source has them, logprobs up to rounding."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.engine.kernels.batches import MAX_NUM_REQS
from tests.engine.kernels.comparison import Sides, assert_same

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

VOCAB_SIZE = 50
POSSIBLE = 5
ROUNDING = 1e-5
SEEDS = range(8)


def random_logits(generator: np.random.Generator, rows: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Logits with ties and impossible tokens, as a view into something larger, as a canvas in a step is.

    The first tokens are possible everywhere; see `random_sampled`.
    """
    logits = np.round(generator.normal(0, 4, (rows + 2, VOCAB_SIZE + 3)), 1)
    logits[generator.random(logits.shape) < 0.2] = -np.inf
    logits[:, :POSSIBLE] = np.round(generator.normal(0, 4, (rows + 2, POSSIBLE)), 1)
    # NaN on all sides: to look past the view is to see it.
    whole = torch.from_numpy(logits).to(dtype)
    whole[[0, -1]] = torch.nan
    whole[:, VOCAB_SIZE:] = torch.nan
    return whole[1:-1, :VOCAB_SIZE]


def random_ids(generator: np.random.Generator, *shape: int) -> torch.Tensor:
    """Token ids, repeated ones among them."""
    return torch.from_numpy(generator.integers(0, VOCAB_SIZE, shape))


def random_sampled(generator: np.random.Generator, rows: int) -> torch.Tensor:
    """A sampled token for each row: a possible one. (Of an impossible one Triton's rank counts its block's padding.)"""
    return torch.from_numpy(generator.integers(0, POSSIBLE, rows))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("columns", [1, 3, 128])
def test_token_logprobs(logprob: Sides, columns: int, dtype: torch.dtype, seed: int) -> None:
    """Log-softmax over the whole row, in float32, at the ids that were asked for."""
    generator = np.random.default_rng(seed)
    logits, ids = random_logits(generator, 5, dtype), random_ids(generator, 5, columns)
    logprob.assert_agree("compute_token_logprobs", logits, ids, tolerance=ROUNDING)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("top_k", [0, 1, 6])
def test_top_k(logprob: Sides, top_k: int, seed: int) -> None:
    """The sampled token and the top k with their logprobs; the sampled token's rank counts ties against it."""
    generator = np.random.default_rng(seed)
    logprob.assert_agree(
        "compute_topk_scores", random_logits(generator, 7), top_k, random_sampled(generator, 7), tolerance=ROUNDING
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("top_k", [0, 6])
def test_ids_of_each_request(logprob: Sides, top_k: int, index_dtype: torch.dtype, seed: int) -> None:
    """A request's own ids take the place of the top k; one that named none gets the top k, or nothing but its token."""
    generator = np.random.default_rng(seed)
    counts = [0, *generator.integers(1, 12, MAX_NUM_REQS - 1).tolist()]
    named = [random_ids(generator, count).tolist() for count in counts]
    # One row of logits for each request, so that no index of a row exceeds the number of requests; see below.
    requests = torch.from_numpy(generator.permutation(MAX_NUM_REQS)).to(index_dtype)
    logits, sampled = random_logits(generator, MAX_NUM_REQS), random_sampled(generator, MAX_NUM_REQS)

    def scores(module: ModuleType) -> Any:
        state = _state(module, named)
        return module.compute_topk_scores(logits, top_k, sampled, None, state, requests, max(counts))

    assert_same(scores(logprob.host), scores(logprob.oracle), tolerance=ROUNDING)


def test_ids_of_more_rows_than_requests(logprob: Sides) -> None:
    """A request has a row of logits for each position of its canvas, whether it named ids or not."""
    generator = np.random.default_rng(0)
    rows = 2 * MAX_NUM_REQS
    logits, sampled = random_logits(generator, rows), random_sampled(generator, rows)
    requests = torch.arange(2).repeat_interleave(MAX_NUM_REQS)

    def scores(module: ModuleType) -> Any:
        state = _state(module, [[1, 2, 3], []])
        return module.compute_topk_scores(logits, 0, sampled, None, state, requests, 3)

    assert_same(scores(logprob.host), scores(logprob.oracle), tolerance=ROUNDING)


def _state(module: ModuleType, named: list[list[int]]) -> Any:
    """What each request asked for, as vLLM's sampler keeps it."""
    from vllm import SamplingParams

    state = module.LogprobTokenIdsState(MAX_NUM_REQS, torch.device("cpu"))
    for row, ids in enumerate(named):
        state.add_request(row, SamplingParams(logprob_token_ids=ids or None))
    state.apply_staged_writes()
    return state
