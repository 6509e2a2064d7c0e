"""From a request to engine requests: which branches travel together.

A bundle that does not fit is split into smaller ones, down to single reads; it is never refused. Branches keep their
order and each bundle takes as many as fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from engine.bundle import BranchShape, BundleLayout, extended_end
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
        return tuple(sorted({label for branch in self.branches for label in branch.label_token_ids}))


@dataclass(frozen=True, slots=True)
class _Load:
    """Branches that travel together, and what they come to."""

    branches: tuple[Branch, ...] = ()
    draft_tokens: int = 0
    label_token_ids: frozenset[int] = frozenset()

    def with_branch(self, branch: Branch, prompt_tokens: int, block_tokens: int) -> _Load:
        """One more."""
        shape = BranchShape(len(branch.suffix_token_ids), len(branch.canvas_token_ids))
        return _Load(
            branches=(*self.branches, branch),
            draft_tokens=extended_end(prompt_tokens, self.draft_tokens, shape, block_tokens),
            label_token_ids=self.label_token_ids | branch.label_token_ids,
        )

    def fits(self, prompt_tokens: int, limits: BundleLimits) -> bool:
        """Whether they can be one engine request."""
        return (
            self.draft_tokens <= limits.draft_tokens
            and prompt_tokens + self.draft_tokens <= limits.total_tokens
            and len(self.label_token_ids) <= MAX_LABELS_PER_READ
        )


def pack(request: ReadRequest, limits: BundleLimits) -> Iterator[Bundle]:
    """Cut a request into engine requests: greedily, in order, each as large as it may be."""
    prompt_tokens, load = len(request.prompt_token_ids), _Load()
    for branch in request.branches:
        together = load.with_branch(branch, prompt_tokens, limits.block_tokens)
        if load.branches and not together.fits(prompt_tokens, limits):
            yield _bundle(request, load.branches, limits)
            together = _Load().with_branch(branch, prompt_tokens, limits.block_tokens)
        load = together
    yield _bundle(request, load.branches, limits)


def alone(request: ReadRequest) -> tuple[ReadRequest, ...]:
    """The branches of a request as requests of their own, each behind the whole prompt and its own suffix."""
    return tuple(
        replace(
            request,
            request_id=f"{request.request_id}-alone-{number}",
            prompt_token_ids=request.prompt_token_ids + branch.suffix_token_ids,
            branches=(branch.without_suffix(),),
        )
        for number, branch in enumerate(request.branches)
    )


def _bundle(request: ReadRequest, branches: tuple[Branch, ...], limits: BundleLimits) -> Bundle:
    part = replace(request, branches=branches)
    if len(branches) == 1:
        (part,) = alone(part)
    return Bundle(part.prompt_token_ids, part.branches, limits.block_tokens, part.is_constrained, part.cache_salt)
