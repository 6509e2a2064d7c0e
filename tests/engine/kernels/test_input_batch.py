"""The batch bookkeeping, launched through vLLM's own functions: every buffer as Triton's source leaves it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.engine.kernels.batches import CANVAS_LENGTH, MAX_MODEL_LEN, MAX_NUM_REQS, SEEDS, Batch, random_batch
from tests.engine.kernels.comparison import Sides, filled, numbered

# vLLM imports torch's inductor, which still uses what torch 2.13 deprecates. Goes with vLLM's next torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")

VOCAB_SIZE = 20
# Room behind the step's tokens, which no kernel may touch.
SPARE = 5

sampled_tokens_per_step = pytest.mark.parametrize("num_new_sampled_tokens", [0, 1])


@pytest.fixture(params=SEEDS)
def generator(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator for each seed."""
    return np.random.default_rng(request.param)


@pytest.fixture
def batch(generator: np.random.Generator) -> Batch:
    """A random batch of reads: a diffusion model samples no token beside its canvas."""
    return random_batch(generator)


@pytest.mark.parametrize("lookahead", [1, 3])
def test_prepare_prefill_inputs(input_batch: Sides, batch: Batch, lookahead: int) -> None:
    """Prompt tokens go into the step's input, the ones after them into the lookahead, which ends with the prompt."""
    input_batch.assert_agree(
        "prepare_prefill_inputs",
        filled(batch.num_tokens + SPARE),
        filled(lookahead, MAX_NUM_REQS),
        batch.idx_mapping,
        batch.query_start_loc,
        numbered(MAX_NUM_REQS, MAX_MODEL_LEN),
        batch.prefill_len,
        batch.num_computed_tokens,
    )


def test_prepare_pos_seq_lens(input_batch: Sides, batch: Batch) -> None:
    """Positions go on from the computed tokens; lengths of rows past the batch are 0."""
    input_batch.assert_agree(
        "prepare_pos_seq_lens",
        batch.idx_mapping,
        batch.query_start_loc,
        batch.num_computed_tokens,
        filled(batch.num_tokens + SPARE, dtype=torch.int64),
        filled(MAX_NUM_REQS),
    )


@sampled_tokens_per_step
def test_combine_sampled_and_draft_tokens(
    input_batch: Sides, generator: np.random.Generator, num_new_sampled_tokens: int
) -> None:
    """Canvases land at the end of their request's input, never on its prompt; their rows are listed for logits."""
    batch = random_batch(generator, num_new_sampled_tokens=num_new_sampled_tokens)
    input_batch.assert_agree(
        "combine_sampled_and_draft_tokens",
        filled(batch.num_tokens + SPARE),
        batch.idx_mapping,
        numbered(MAX_NUM_REQS, 1, dtype=torch.int64),
        batch.query_start_loc,
        batch.seq_lens,
        batch.prefill_len,
        numbered(MAX_NUM_REQS, CANVAS_LENGTH, dtype=torch.int64),
        batch.cu_num_logits,
        batch.num_logits,
        num_new_sampled_tokens,
    )


@sampled_tokens_per_step
def test_get_num_sampled_and_rejected(
    input_batch: Sides, generator: np.random.Generator, num_new_sampled_tokens: int
) -> None:
    """What was not accepted is rejected, and inside of a prompt nothing is either."""
    batch = random_batch(generator, num_new_sampled_tokens=num_new_sampled_tokens)
    num_sampled = generator.integers(0, CANVAS_LENGTH + 1, len(batch.idx_mapping), dtype=np.int32)
    input_batch.assert_agree(
        "get_num_sampled_and_rejected",
        torch.from_numpy(num_sampled),
        batch.seq_lens,
        batch.cu_num_logits,
        batch.idx_mapping,
        batch.prefill_len,
    )


@pytest.mark.parametrize("has_query_start_loc", [True, False])
@pytest.mark.parametrize("has_bin_counts", [True, False])
def test_post_update(
    input_batch: Sides,
    batch: Batch,
    generator: np.random.Generator,
    has_query_start_loc: bool,
    has_bin_counts: bool,
) -> None:
    """Sampled tokens are appended and counted, computed tokens advance, rows marked -1 stay as they are."""
    num_reqs = len(batch.idx_mapping)
    sampled_tokens = generator.integers(0, VOCAB_SIZE, (num_reqs, CANVAS_LENGTH + SPARE))
    num_sampled, num_rejected = generator.integers(0, CANVAS_LENGTH + 1, (2, num_reqs), dtype=np.int32)
    input_batch.assert_agree(
        "post_update",
        batch.with_skipped_rows(generator),
        batch.num_computed_tokens,
        filled(MAX_NUM_REQS, 1, dtype=torch.int64),
        filled(MAX_NUM_REQS, VOCAB_SIZE) if has_bin_counts else None,
        torch.from_numpy(sampled_tokens)[:, :CANVAS_LENGTH],
        torch.from_numpy(num_sampled),
        torch.from_numpy(num_rejected),
        batch.query_start_loc if has_query_start_loc else None,
        filled(MAX_NUM_REQS, MAX_MODEL_LEN),
        batch.total_len,
    )


def test_post_update_num_computed_tokens(input_batch: Sides, batch: Batch) -> None:
    """Computed tokens advance by what was scheduled."""
    input_batch.assert_agree(
        "post_update_num_computed_tokens", batch.idx_mapping, batch.num_computed_tokens, batch.query_start_loc
    )


def test_expand_idx_mapping(input_batch: Sides, batch: Batch) -> None:
    """Each row of logits knows its request, and its place within that request."""
    input_batch.assert_agree(
        "expand_idx_mapping", batch.idx_mapping, batch.num_logits, batch.cu_num_logits, CANVAS_LENGTH
    )
