"""The attention rows of a step: one for a request that vLLM handles alone, several for a read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.bundle import AttentionRow
from engine.placed_read import ReadNow


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlan:
    """The rows in the order of the step's tokens.

    Attributes:
        sources: per row, the index in the batch of the request it belongs to.
        shared_tokens: per row, the tokens of the prompt's full blocks, after which a branch's own blocks come.
    """

    sources: Sequence[int]
    rows: Sequence[AttentionRow]
    shared_tokens: Sequence[int]

    @classmethod
    def of(cls, plain: Sequence[AttentionRow], reads: Mapping[int, ReadNow]) -> RowPlan:
        """From the one row of every request as vLLM has it, and the reads among them by index."""
        sources: list[int] = []
        rows: list[AttentionRow] = []
        for index, row in enumerate(plain):
            own = reads[index].attention_rows() if index in reads else (row,)
            sources += [index] * len(own)
            rows += own
        shared = {index: now.read.layout.shared_tokens for index, now in reads.items()}
        return cls(sources=sources, rows=rows, shared_tokens=[shared.get(source, 0) for source in sources])

    @property
    def query_start_loc(self) -> torch.Tensor:
        """int32 [rows + 1]: where each row's tokens begin among the step's."""
        return torch.tensor(np.cumsum([0, *(row.tokens for row in self.rows)]), dtype=torch.int32)

    @property
    def max_query_len(self) -> int:
        """Tokens of the longest row."""
        return max(row.tokens for row in self.rows)

    @property
    def seq_lens(self) -> torch.Tensor:
        """int32 [rows]."""
        return torch.tensor([row.seq_len for row in self.rows], dtype=torch.int32)

    @property
    def causal(self) -> torch.Tensor:
        """int32 [rows], as the attention kernel takes it: 1 is causal, 0 is bidirectional."""
        return torch.tensor([row.is_causal for row in self.rows], dtype=torch.int32)

    def block_table(self, table: torch.Tensor, block_size: int) -> torch.Tensor:
        """int32 [rows, blocks] from vLLM's [requests, blocks], for KV blocks of `block_size` tokens."""
        rows = table[torch.tensor(self.sources)]
        for index, (row, shared_tokens) in enumerate(zip(self.rows, self.shared_tokens, strict=True)):
            if row.own_position is not None:
                first, own = shared_tokens // block_size, row.own_position // block_size
                count = -(-row.own_tokens // block_size)
                # The own blocks come later in the request, so what is overwritten may be what is read: copy first.
                rows[index, first : first + count] = rows[index, own : own + count].clone()
        return rows
