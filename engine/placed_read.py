"""A read as the worker knows it, and its place in the step that runs its draft."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.bundle import AttentionRow, BranchShape, BundleLayout
from engine.fusion import BLOCK_TOKENS, BRANCHES, SLOTS, extra_args_of, is_single_step_read


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRead:
    """A single-step read and its layout.

    Attributes:
        slot_offsets: int64 [slots], in the draft; logits are computed there and nowhere else.
        label_token_ids: what is reported of each slot; empty: something else is asked for, which only vLLM can report.
        is_constrained: logprobs are normalised over the labels, not over the vocabulary.
    """

    layout: BundleLayout
    slot_offsets: NDArray[np.int64]
    label_token_ids: tuple[int, ...]
    is_constrained: bool

    @classmethod
    def from_request(cls, prompt_tokens: int, params: Any) -> PlacedRead | None:
        """From a request's sampling parameters; None: no read. One without a layout is one canvas, all of it slots."""
        extra_args = extra_args_of(params)
        if not is_single_step_read(extra_args):
            return None
        width = len(extra_args["diffusion_seed_canvas"])
        branches = tuple(BranchShape(*shape) for shape in extra_args.get(BRANCHES, [(0, width)]))
        return cls(
            layout=BundleLayout(prompt_tokens, branches, extra_args.get(BLOCK_TOKENS, 1)),
            slot_offsets=np.array(extra_args.get(SLOTS, range(width)), dtype=np.int64),
            label_token_ids=tuple(params.logprob_token_ids or ()) if params.logprobs is None else (),
            is_constrained=bool(extra_args.get("diffusion_constrained")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNow:
    """A read whose draft runs in this step.

    Attributes:
        row: its index in the batch.
        start, draft_start: where its tokens, and of these its draft, begin among the step's tokens.
    """

    row: int
    read: PlacedRead
    start: int
    draft_start: int

    def attention_rows(self) -> tuple[AttentionRow, ...]:
        """Its rows, that of its prompt included if the end of it runs in this step."""
        return self.read.layout.rows(self.draft_start - self.start)

    def canvas_tokens(self) -> NDArray[np.int64]:
        """int64 [canvas tokens]: where its canvases stand among the step's tokens."""
        canvases = self.read.layout.canvases
        offsets: NDArray[np.int64] = np.concatenate([np.arange(span.offset, span.end) for span in canvases])
        return offsets + self.draft_start

    def slot_tokens(self) -> NDArray[np.int64]:
        """int64 [slots]: where its slots stand among the step's tokens."""
        return self.read.slot_offsets + self.draft_start
