"""From a request to engine requests: which branches travel together.

A bundle that does not fit is split into smaller ones, down to single reads; it is never refused. Branches keep their
order and each bundle takes as many as fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from engine.bundle import BranchShape, BundleLayout
from engine.protocol import MAX_LABELS_PER_READ, Branch, ReadRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleLimits:
    """What one engine request may be.

    Attributes:
        draft_tokens: widest draft; 0: no bundles, every branch is a read of its own.
        total_tokens: prompt and draft.
        block_tokens: see `BundleLayout`.
    """

    draft_tokens: int
    total_tokens: int
    block_tokens: int


@dataclass(frozen=True)
class Bundle:
    """Branches that are one engine request.

    A single branch has no suffix here: its suffix is part of its prompt, where the prefix cache can keep it.
    """

    prompt_token_ids: tuple[int, ...]
    branches: tuple[Branch, ...]
    block_tokens: int
    is_constrained: bool = True
    cache_salt: str | None = None

    @cached_property
    def layout(self) -> BundleLayout:
        """Where everything stands."""
        shapes = tuple(BranchShape(len(b.suffix_token_ids), len(b.canvas_token_ids)) for b in self.branches)
        return BundleLayout(len(self.prompt_token_ids), shapes, self.block_tokens)

    @cached_property
    def draft_token_ids(self) -> list[int]:
        """All the token ids behind the prompt."""
        return self.layout.draft(
            self.prompt_token_ids,
            [branch.suffix_token_ids for branch in self.branches],
            [branch.canvas_token_ids for branch in self.branches],
            filler=self.prompt_token_ids[-1],
        )

    @cached_property
    def slot_offsets(self) -> tuple[int, ...]:
        """The slots of all branches as offsets in the draft, in order of branches and slots."""
        return tuple(
            canvas.offset + slot.position
            for canvas, branch in zip(self.layout.canvases, self.branches, strict=True)
            for slot in branch.canvas_slots
        )

    @property
    def label_token_ids(self) -> tuple[int, ...]:
        """Every label of every slot once, ascending, so that equal sets compare equal across requests."""
        return tuple(sorted(labels_of(self.branches)))

    def fits(self, limits: BundleLimits) -> bool:
        """Whether it can be one engine request."""
        draft_tokens = self.layout.draft_tokens
        return (
            draft_tokens <= limits.draft_tokens
            and len(self.prompt_token_ids) + draft_tokens <= limits.total_tokens
            and len(labels_of(self.branches)) <= MAX_LABELS_PER_READ
        )


def labels_of(branches: Sequence[Branch]) -> set[int]:
    """Every label of every slot of some branches."""
    return {label for branch in branches for label in branch.label_token_ids}


def pack(request: ReadRequest, limits: BundleLimits) -> Iterator[Bundle]:
    """Cut a request into engine requests: greedily, in order, each as large as it may be."""
    packed: tuple[Branch, ...] = ()
    for branch in request.branches:
        together = (*packed, branch)
        if packed and not Bundle(request.prompt_token_ids, together, limits.block_tokens).fits(limits):
            yield _bundle(request, packed, limits)
            together = (branch,)
        packed = together
    yield _bundle(request, packed, limits)


def _bundle(request: ReadRequest, branches: tuple[Branch, ...], limits: BundleLimits) -> Bundle:
    prompt_token_ids = request.prompt_token_ids
    if len(branches) == 1:
        prompt_token_ids, branches = prompt_token_ids + branches[0].suffix_token_ids, (branches[0].without_suffix(),)
    return Bundle(prompt_token_ids, branches, limits.block_tokens, request.is_constrained, request.cache_salt)
