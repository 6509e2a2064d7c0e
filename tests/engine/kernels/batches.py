"""Random batches of one engine step, laid out as Model Runner V2 hands them to its kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

MAX_NUM_REQS = 8
MAX_PROMPT = 24
MAX_OUTPUT = 8
# The served canvas: the most draft tokens a request carries.
CANVAS_LENGTH = 16
MAX_MODEL_LEN = 64

SEEDS = range(25)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some requests of the runner's state, in any order, each at some point of its life.

    Attributes:
        idx_mapping: the row in the runner's state of each request of the batch.
        query_start_loc: where each request's tokens begin in the step's input; padded to `num_reqs_padded + 1`.
        seq_lens: tokens of each request after this step.
        cu_num_logits: where each request's rows of logits begin.
        num_computed_tokens, prefill_len, total_len: of every row of the runner's state, in the batch or not.
    """

    idx_mapping: torch.Tensor
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    cu_num_logits: torch.Tensor
    num_computed_tokens: torch.Tensor
    prefill_len: torch.Tensor
    total_len: torch.Tensor
    num_reqs_padded: int
    num_tokens: int
    num_logits: int

    def with_skipped_rows(self, generator: np.random.Generator) -> torch.Tensor:
        """`idx_mapping` with some rows marked -1, as vLLM marks requests that are none."""
        skipped = torch.from_numpy(generator.random(len(self.idx_mapping)) < 0.3)
        return self.idx_mapping.masked_fill(skipped, -1)


def random_batch(generator: np.random.Generator, *, num_new_sampled_tokens: int = 0) -> Batch:
    """A batch of chunks and ends of prompts, canvases alone, and canvases behind the rest of their prompt."""
    num_reqs = int(generator.integers(1, MAX_NUM_REQS + 1))
    num_reqs_padded = int(generator.integers(num_reqs, MAX_NUM_REQS + 1))
    rows = generator.permutation(MAX_NUM_REQS)[:num_reqs]
    prefill_len = generator.integers(1, MAX_PROMPT + 1, MAX_NUM_REQS)
    computed = generator.integers(0, MAX_PROMPT + MAX_OUTPUT, MAX_NUM_REQS)
    scheduled, logits = np.empty(num_reqs, dtype=np.int64), np.empty(num_reqs, dtype=np.int64)
    for batch, row in enumerate(rows):
        plan = _random_plan(generator, int(prefill_len[row]), num_new_sampled_tokens)
        computed[row], scheduled[batch], logits[batch] = plan
    starts = np.cumsum([0, *scheduled])
    return Batch(
        idx_mapping=torch.from_numpy(rows),
        query_start_loc=_int32(np.append(starts, [starts[-1]] * (num_reqs_padded - num_reqs))),
        seq_lens=_int32(computed[rows] + scheduled),
        cu_num_logits=_int32(np.cumsum([0, *logits])),
        num_computed_tokens=_int32(computed),
        prefill_len=_int32(prefill_len),
        total_len=_int32(np.maximum(computed, prefill_len)),
        num_reqs_padded=num_reqs_padded,
        num_tokens=int(starts[-1]),
        num_logits=int(logits.sum()),
    )


def _random_plan(generator: np.random.Generator, prompt: int, sampled: int) -> tuple[int, int, int]:
    """Computed tokens, scheduled tokens and rows of logits of one request."""
    drafts = int(generator.integers(1, CANVAS_LENGTH + 1))
    computed = int(generator.integers(0, prompt))
    match generator.choice(["prompt", "canvas", "both"]):
        case "prompt":
            # Drafts in a prompt do not happen, but the kernels say what becomes of them: nothing.
            scheduled = int(generator.integers(1, prompt - computed + 1))
            return computed, scheduled, min(scheduled, drafts if generator.random() < 0.2 else sampled)
        case "canvas":
            return prompt + int(generator.integers(0, MAX_OUTPUT)), drafts + sampled, drafts + sampled
        case _:
            return computed, prompt - computed + drafts, drafts + sampled


def _int32(values: np.ndarray[tuple[int], np.dtype[np.int64]]) -> torch.Tensor:
    return torch.from_numpy(values.astype(np.int32))
