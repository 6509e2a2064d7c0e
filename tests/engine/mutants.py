"""Faults to put into a running worker: each is a mistake that fused reads could have been written with."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from engine.bundle import AttentionRow, BundleLayout, Span, SpanKind
from engine.row_plan import RowPlan

Change = Callable[[AttentionRow, Span | None], AttentionRow]

# What is in force in this process.
active: list[Any] = []


def install(_worker: Any, name: str | None) -> None:
    """Called in the worker: this fault and no other; None: no fault."""
    while active:
        active.pop().stop()
    if name is not None:
        active.append(MUTANTS[name]())
        active[-1].start()


def _changed_rows(change: Change) -> Any:
    """Rows other than they should be. The prompt's row belongs to no span of the draft."""
    original = BundleLayout.rows

    def rows(layout: BundleLayout, prompt_tokens_now: int) -> tuple[AttentionRow, ...]:
        spans: tuple[Span | None, ...] = ((None,) if prompt_tokens_now else ()) + layout.spans
        return tuple(map(change, original(layout, prompt_tokens_now), spans))

    return mock.patch.object(BundleLayout, "rows", rows)


def causal_canvas() -> Any:
    """The canvas row sees no token after the query."""
    return _changed_rows(
        lambda row, span: dataclasses.replace(
            row, is_causal=row.is_causal or (span is not None and span.kind is SpanKind.CANVAS)
        )
    )


def bidirectional_prompt() -> Any:
    """The prompt's queries see the whole prompt."""
    return _changed_rows(lambda row, span: dataclasses.replace(row, is_causal=row.is_causal and span is not None))


def self_conditioned_prompt() -> Any:
    """Self-conditioning normalises everything that runs with a read, not its canvas alone."""
    from engine.placed_read import ReadNow

    def everything(now: ReadNow) -> Any:
        return np.arange(now.start, now.draft_start + now.read.layout.draft_tokens)

    return mock.patch.object(ReadNow, "canvas_tokens", everything)


def positions_not_rewritten() -> Any:
    """Further branches keep the positions the scheduler gave them."""
    from engine.model_state import FusedModelState

    original = FusedModelState.prepare_inputs

    def prepare_inputs(self: Any, input_batch: Any, req_states: Any) -> dict[str, Any]:
        inputs = original(self, input_batch, req_states)
        inputs.pop("positions", None)
        return inputs

    return mock.patch.object(FusedModelState, "prepare_inputs", prepare_inputs)


def neighbours_block() -> Any:
    """A further branch reads the last block of the branch before it in place of its own first."""
    original = RowPlan.block_table

    def block_table(self: RowPlan, table: Any, block_size: int) -> Any:
        rows = original(self, table, block_size)
        for index, (row, shared_tokens) in enumerate(zip(self.rows, self.shared_tokens, strict=True)):
            if row.own_position is not None:
                neighbour = table[self.sources[index], row.own_position // block_size - 1]
                rows[index, shared_tokens // block_size] = neighbour
        return rows

    return mock.patch.object(RowPlan, "block_table", block_table)


def no_tail() -> Any:
    """A further branch begins with something else than a copy of the prompt's tail."""
    from engine.read_sampler import ReadSampler

    original = ReadSampler.add_request

    def add_request(self: Any, req_idx: int, params: Any) -> None:
        original(self, req_idx, params)
        read = self._reads.get(req_idx)
        for span in read.layout.spans if read is not None else ():
            if span.kind is SpanKind.CAUSAL and span.branch:
                tail = slice(span.offset, span.offset + read.layout.tail_tokens)
                self._sampler.req_states.draft_tokens[req_idx, tail] = 11

    return mock.patch.object(ReadSampler, "add_request", add_request)


def slots_off_by_one() -> Any:
    """Logits of the token ahead of each slot."""
    from engine.placed_read import ReadNow

    original = ReadNow.slot_tokens
    return mock.patch.object(ReadNow, "slot_tokens", lambda now: original(now) - 1)


def labels_mixed_up() -> Any:
    """Where reads of different labels share a step, each label gets the logprob of the one before it."""
    from engine import read_sampler

    original = read_sampler._own_columns

    def own_columns(*arguments: Any) -> Any:
        logprobs = original(*arguments)
        return logprobs._replace(logprobs=logprobs.logprobs.roll(1, dims=1))

    return mock.patch.object(read_sampler, "_own_columns", own_columns)


MUTANTS: dict[str, Callable[[], Any]] = {
    mutant.__name__: mutant
    for mutant in (
        causal_canvas,
        bidirectional_prompt,
        self_conditioned_prompt,
        positions_not_rewritten,
        neighbours_block,
        no_tail,
        slots_off_by_one,
        labels_mixed_up,
    )
}
