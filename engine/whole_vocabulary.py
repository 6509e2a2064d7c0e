"""How much probability the whole vocabulary has, for the rows of a step that want to know."""

from __future__ import annotations

from collections.abc import Callable

import torch

# Rows of float32 logits over a vocabulary of 262,144 are 1 MB each: few at a time, whatever a step holds.
ROWS_AT_ONCE = 16

Logits = Callable[[torch.Tensor], torch.Tensor]


class WholeVocabulary:
    """Normalisers of unconstrained reads.

    vLLM computes a step's logits over the whole vocabulary as soon as one request in it is unconstrained, for all of
    them and in several copies. A read reports a few labels only: their logits, and the log of the sum over everything.
    `FusedModelState` says which rows want it, the model's head measures it, and `ReadSampler` applies it.

    Attributes:
        rows: int64 [wanted], of the step's rows of logits.
        log_sums: float32 [wanted], log-sum-exp over the vocabulary.
    """

    def __init__(self) -> None:
        self.rows = torch.empty(0, dtype=torch.int64)
        self.log_sums = torch.empty(0)

    def want(self, rows: torch.Tensor) -> None:
        """Say which rows of the coming step's logits are to be measured."""
        self.rows = rows
        self.log_sums = torch.empty(0)

    def measure(self, hidden_states: torch.Tensor, logits: Logits) -> None:
        """Measure a step.

        Args:
            hidden_states: [rows, hidden], of all rows.
            logits: from [some rows, hidden] to [some rows, vocabulary].
        """
        sums = [logits(hidden_states[rows]).float().logsumexp(dim=-1) for rows in self.rows.split(ROWS_AT_ONCE)]
        self.log_sums = torch.cat(sums)
