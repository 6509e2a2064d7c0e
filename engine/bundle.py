"""The layout of a bundle: one shared prompt, several branches, one engine request, one engine step.

To vLLM a bundle is a prompt of P tokens and one wide canvas, the *draft*. This module says what stands where in the
draft, and how it is cut into attention rows, so that every branch sees the shared prompt, its own suffix and its own
canvas, and nothing else: what it would see as a request of its own.

    draft of three branches, KV blocks of 8 tokens, P = 19 (two full blocks and a tail of 3):

    prompt            | 0        | filler | 1                      | filler | 2
    p p p ... p p p   | s c c c  | - -    | t t t s s c c          | -      | t t t c c c c
                      |          | ^ the next block boundary of the request

Branch 0 follows the prompt directly. A further branch begins on a block boundary with a copy of the prompt's *tail*,
the tokens of its last, partly filled block: so it owns every block it writes to and shares only the prompt's full
blocks. Its attention rows read through a block table of their own: the full blocks of the prompt, then its own.

Everything is in tokens. Offsets count from the first token of the draft, positions from the first of the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property


class SpanKind(Enum):
    """What a stretch of a draft is."""

    CAUSAL = "causal"
    CANVAS = "canvas"
    FILLER = "filler"


@dataclass(frozen=True, slots=True)
class BranchShape:
    """The sizes of one branch: a causal suffix, which may be empty, and a canvas."""

    suffix_tokens: int
    canvas_tokens: int

    def __post_init__(self) -> None:
        if self.suffix_tokens < 0 or self.canvas_tokens < 1:
            raise ValueError("a branch has a suffix of no negative length and a canvas; this is a bug")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of a draft that is one attention row.

    Attributes:
        offset: of its first token in the draft.
        position: rotary position of its first token; a branch continues the prompt whatever stands before it.
        own_offset: where the blocks of its branch begin, as an offset in the draft; None: it reads the request's table.
    """

    kind: SpanKind
    branch: int
    offset: int
    tokens: int
    position: int
    own_offset: int | None

    @property
    def end(self) -> int:
        """One past its last token."""
        return self.offset + self.tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRow:
    """One row of an attention call: consecutive tokens that see the same keys, causally or all of them.

    Attributes:
        tokens: how many queries it has.
        seq_len: how many keys its last query sees, from the first position on.
        own_position: where, as a position of the request, the blocks start that take the place of what follows the
            prompt's full blocks; None: the request's own block table as it is.
        own_tokens: how many tokens those blocks hold.
    """

    tokens: int
    seq_len: int
    is_causal: bool
    own_position: int | None = None
    own_tokens: int = 0


@dataclass(frozen=True)
class BundleLayout:
    """Where everything stands in the draft of one bundle.

    Attributes:
        prompt_tokens: P, the length of the shared prompt.
        block_tokens: a multiple of the size of every KV block; where further branches may begin.
    """

    prompt_tokens: int
    branches: tuple[BranchShape, ...]
    block_tokens: int

    def __post_init__(self) -> None:
        if not self.branches or self.prompt_tokens < 1 or self.block_tokens < 1:
            raise ValueError("a bundle needs a prompt, a branch and a block size; this is a bug")

    @property
    def tail_tokens(self) -> int:
        """Prompt tokens in its last, partly filled block: what each further branch begins with."""
        return self.prompt_tokens % self.block_tokens

    @property
    def shared_tokens(self) -> int:
        """Prompt tokens in full blocks, which all branches read."""
        return self.prompt_tokens - self.tail_tokens

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """The whole draft in order, without gaps."""
        spans: list[Span] = []
        for branch in range(len(self.branches)):
            end = spans[-1].end if spans else 0
            if filler := filler_tokens(self.prompt_tokens, end, self.block_tokens):
                spans.append(_filler(spans[-1], filler))
            spans += self._branch_spans(branch, end + filler)
        return tuple(spans)

    @cached_property
    def canvases(self) -> tuple[Span, ...]:
        """The canvas of each branch, in order."""
        return tuple(span for span in self.spans if span.kind is SpanKind.CANVAS)

    @property
    def draft_tokens(self) -> int:
        """The width of the draft."""
        return self.spans[-1].end

    def draft(
        self, prompt: Sequence[int], suffixes: Sequence[Sequence[int]], canvases: Sequence[Sequence[int]], filler: int
    ) -> list[int]:
        """The draft's token ids.

        Args:
            prompt: the shared prompt's token ids.
            suffixes, canvases: token ids, one sequence a branch.
            filler: what stands where nobody looks.
        """
        ids = [filler] * self.draft_tokens
        for span in self.spans:
            if span.kind is SpanKind.CANVAS:
                ids[span.offset : span.end] = canvases[span.branch]
            elif span.kind is SpanKind.CAUSAL:
                tail = prompt[self.shared_tokens :] if span.own_offset is not None else ()
                ids[span.offset : span.end] = (*tail, *suffixes[span.branch])
        return ids

    def rows(self, prompt_tokens_now: int) -> tuple[AttentionRow, ...]:
        """The attention rows of the step that runs the draft.

        A fused read has the *two attention rows* that give this project its speed: the end of the prompt, causal, whose
        queries see no token after themselves; and the canvas, bidirectional, whose queries see the whole prompt and the
        whole canvas. The prompt's keys are written before either row attends, in the same layer of the same step, so
        the canvas reads what it would have read one step later.

        Args:
            prompt_tokens_now: prompt tokens that run in the same step, before the draft. 0 when the read has fallen
                back and its prompt was finished a step ago.
        """
        prompt = AttentionRow(tokens=prompt_tokens_now, seq_len=self.prompt_tokens, is_causal=True)
        return ((prompt,) if prompt_tokens_now else ()) + tuple(map(self._row, self.spans))

    def _branch_spans(self, branch: int, offset: int) -> list[Span]:
        shape = self.branches[branch]
        lead = shape.suffix_tokens + (self.tail_tokens if branch else 0)
        position = self.shared_tokens if branch else self.prompt_tokens

        def span(kind: SpanKind, start: int, tokens: int) -> Span:
            return Span(
                kind=kind,
                branch=branch,
                offset=offset + start,
                tokens=tokens,
                position=position + start,
                own_offset=offset if branch else None,
            )

        canvas = span(SpanKind.CANVAS, lead, shape.canvas_tokens)
        return [span(SpanKind.CAUSAL, 0, lead), canvas] if lead else [canvas]

    def _row(self, span: Span) -> AttentionRow:
        own_offset = span.own_offset
        return AttentionRow(
            tokens=span.tokens,
            seq_len=span.position + span.tokens,
            is_causal=span.kind is not SpanKind.CANVAS,
            own_position=None if own_offset is None else self.prompt_tokens + own_offset,
            own_tokens=0 if own_offset is None else span.end - own_offset,
        )


def filler_tokens(prompt_tokens: int, end: int, block_tokens: int) -> int:
    """Tokens between the end of a draft and where a further branch may begin; none before the first branch."""
    return -(prompt_tokens + end) % block_tokens if end else 0


def extended_end(prompt_tokens: int, end: int, shape: BranchShape, block_tokens: int) -> int:
    """Where a draft that ends at `end` (0: no draft yet) ends with one more branch. The same as a layout would say."""
    tail = prompt_tokens % block_tokens if end else 0
    start = end + filler_tokens(prompt_tokens, end, block_tokens)
    return start + tail + shape.suffix_tokens + shape.canvas_tokens


def _filler(before: Span, tokens: int) -> Span:
    """What fills the last block of a branch. It continues the branch causally, so its numbers stay sane."""
    return Span(
        kind=SpanKind.FILLER,
        branch=before.branch,
        offset=before.end,
        tokens=tokens,
        position=before.position + before.tokens,
        own_offset=before.own_offset,
    )
