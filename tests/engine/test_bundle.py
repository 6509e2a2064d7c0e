"""The layout of a bundle, followed key by key: what does every query of every row really see?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.bundle import AttentionRow, BranchShape, BundleLayout, Span, SpanKind

BLOCK_SIZES = (1, 2, 8, 16)  # each divides the next

shapes = st.builds(BranchShape, st.integers(0, 40), st.integers(1, 40))
layouts = st.builds(
    BundleLayout,
    prompt_tokens=st.integers(1, 100),
    branches=st.lists(shapes, min_size=1, max_size=6).map(tuple),
    block_tokens=st.sampled_from(BLOCK_SIZES[2:]),
)

# What a token is: prompt, suffix or canvas, of which branch (-1: the prompt), and where in it.
Content = tuple[str, int, int]


@dataclass(frozen=True)
class Token:
    """A token of a request: what it is, and the rotary position under which its key is stored."""

    content: Content
    position: int


def contents(layout: BundleLayout) -> list[Token]:
    """The request's tokens in order, prompt and draft; each stands in the KV slot of its index."""
    prompt = [Token(("prompt", -1, i), i) for i in range(layout.prompt_tokens)]
    return prompt + [token for span in layout.spans for token in span_tokens(layout, span)]


def span_tokens(layout: BundleLayout, span: Span) -> list[Token]:
    """The tokens of one span. A tail's are the prompt's."""
    if span.kind is SpanKind.CAUSAL:
        first = layout.shared_tokens if span.branch else layout.prompt_tokens
        tail = [("prompt", -1, i) for i in range(first, layout.prompt_tokens)]
        named: list[Content] = [*tail, *(("suffix", span.branch, i) for i in range(span.tokens - len(tail)))]
    else:
        named = [(span.kind.value, span.branch, i) for i in range(span.tokens)]
    return [Token(content, span.position + i) for i, content in enumerate(named)]


def table_of(row: AttentionRow, layout: BundleLayout, block_size: int) -> list[int]:
    """The block table of a row, where the request's own is 0, 1, 2, ..."""
    total = layout.prompt_tokens + layout.draft_tokens
    table = list(range(-(-total // block_size)))
    if row.own_position is not None:
        first, own = layout.shared_tokens // block_size, row.own_position // block_size
        count = -(-row.own_tokens // block_size)
        table[first : first + count] = table[own : own + count]
    return table


def seen_by(row: AttentionRow, query: int, layout: BundleLayout, block_size: int) -> list[Token | None]:
    """What query number `query` of a row sees, by position; None: a slot that holds nothing of this request."""
    tokens = dict(enumerate(contents(layout)))
    table = table_of(row, layout, block_size)
    end = row.seq_len - row.tokens + query + 1 if row.is_causal else row.seq_len
    return [tokens.get(table[k // block_size] * block_size + k % block_size) for k in range(end)]


def alone(layout: BundleLayout, branch: int, *, suffix_tokens: int, canvas_tokens: int) -> list[Token]:
    """What a branch's token would see as a request of its own."""
    named: list[Content] = [("prompt", -1, i) for i in range(layout.prompt_tokens)]
    named += [("suffix", branch, i) for i in range(suffix_tokens)]
    named += [("canvas", branch, i) for i in range(canvas_tokens)]
    return [Token(content, position) for position, content in enumerate(named)]


@given(layouts, st.sampled_from(BLOCK_SIZES))
def test_every_branch_sees_what_it_would_see_alone(layout: BundleLayout, block_size: int) -> None:
    """Its prompt, its suffix, its canvas, in order and under the right positions; no neighbour, no gap."""
    block_size = min(block_size, layout.block_tokens)
    for span, row in zip(layout.spans, layout.rows(0), strict=True):
        shape = layout.branches[span.branch]
        if span.kind is SpanKind.CANVAS:
            expected = alone(layout, span.branch, suffix_tokens=shape.suffix_tokens, canvas_tokens=span.tokens)
            assert seen_by(row, 0, layout, block_size) == expected
            assert not row.is_causal
        if span.kind is SpanKind.CAUSAL:
            assert row.is_causal
            for query in {0, span.tokens - 1}:
                own = contents(layout)[layout.prompt_tokens + span.offset + query]
                expected = alone(layout, span.branch, suffix_tokens=shape.suffix_tokens, canvas_tokens=0)
                assert seen_by(row, query, layout, block_size) == expected[: own.position + 1]


@given(layouts)
def test_each_query_stands_where_its_row_says(layout: BundleLayout) -> None:
    """A row's last query has the position of its last key: the kernel derives one from the other."""
    for span, row in zip(layout.spans, layout.rows(0), strict=True):
        assert row.tokens == span.tokens
        assert row.seq_len == span.position + span.tokens


@given(layouts)
def test_spans_cover_the_draft(layout: BundleLayout) -> None:
    """Without gap or overlap, none empty; fillers only between branches."""
    assert all(span.tokens > 0 for span in layout.spans)
    assert [span.offset for span in layout.spans] == [0, *accumulate(span.tokens for span in layout.spans)][:-1]
    assert layout.draft_tokens == sum(span.tokens for span in layout.spans)
    for span, after in pairwise(layout.spans):
        if span.kind is SpanKind.FILLER:
            assert after.branch == span.branch + 1
    assert layout.spans[-1].kind is SpanKind.CANVAS


@given(layouts)
def test_further_branches_own_their_blocks(layout: BundleLayout) -> None:
    """Each begins on a block boundary, and no token of another branch stands in its blocks."""
    for branch in range(1, len(layout.branches)):
        own = [span for span in layout.spans if span.branch == branch]
        assert (layout.prompt_tokens + own[0].offset) % layout.block_tokens == 0
        assert all(span.own_offset == own[0].offset for span in own)
        if branch < len(layout.branches) - 1:
            assert (layout.prompt_tokens + own[-1].end) % layout.block_tokens == 0


@given(layouts)
def test_a_draft_holds_every_branch(layout: BundleLayout) -> None:
    """Token ids stand where the spans say."""
    prompt = [1000 + i for i in range(layout.prompt_tokens)]
    suffixes = [[2000 + 100 * b + i for i in range(shape.suffix_tokens)] for b, shape in enumerate(layout.branches)]
    canvases = [[9000 + 100 * b + i for i in range(shape.canvas_tokens)] for b, shape in enumerate(layout.branches)]
    draft = layout.draft(prompt, suffixes, canvases, filler=-7)

    def token_id(content: Content) -> int:
        kind, branch, at = content
        return {"prompt": 1000 + at, "suffix": 2000 + 100 * branch + at, "canvas": 9000 + 100 * branch + at}.get(
            kind, -7
        )

    assert draft == [token_id(token.content) for token in contents(layout)[layout.prompt_tokens :]]


@given(layouts, st.integers(1, 100))
def test_a_fused_read_has_a_row_for_its_prompt(layout: BundleLayout, prompt_tokens_now: int) -> None:
    """Causal, ending at the prompt's end, before the draft's rows, which are what they are one step later."""
    first, *rest = layout.rows(prompt_tokens_now)
    assert first == AttentionRow(tokens=prompt_tokens_now, seq_len=layout.prompt_tokens, is_causal=True)
    assert tuple(rest) == layout.rows(0)


def test_the_two_attention_rows() -> None:
    """The simplest read: 19 tokens of prompt, all of them now, and a canvas of 4."""
    layout = BundleLayout(19, (BranchShape(0, 4),), block_tokens=8)
    assert layout.rows(19) == (
        AttentionRow(tokens=19, seq_len=19, is_causal=True),
        AttentionRow(tokens=4, seq_len=23, is_causal=False),
    )


def test_the_picture_in_the_docstring() -> None:
    """Three branches, blocks of 8 tokens, P = 19."""
    layout = BundleLayout(19, (BranchShape(1, 3), BranchShape(2, 2), BranchShape(0, 4)), block_tokens=8)
    assert [(span.kind.value, span.branch, span.offset, span.tokens, span.position) for span in layout.spans] == [
        ("causal", 0, 0, 1, 19),
        ("canvas", 0, 1, 3, 20),
        ("filler", 0, 4, 1, 23),
        ("causal", 1, 5, 5, 16),
        ("canvas", 1, 10, 2, 21),
        ("filler", 1, 12, 1, 23),
        ("causal", 2, 13, 3, 16),
        ("canvas", 2, 16, 4, 19),
    ]
    assert layout.shared_tokens == 16
    assert layout.tail_tokens == 3


@pytest.mark.parametrize(
    ("prompt_tokens", "branches", "block_tokens"),
    [(0, (BranchShape(0, 1),), 8), (1, (), 8), (1, (BranchShape(0, 1),), 0)],
)
def test_impossible_layouts(prompt_tokens: int, branches: tuple[BranchShape, ...], block_tokens: int) -> None:
    """No prompt, no branch, no block."""
    with pytest.raises(ValueError, match="this is a bug"):
        BundleLayout(prompt_tokens, branches, block_tokens)


@pytest.mark.parametrize("sizes", [(-1, 1), (0, 0)])
def test_impossible_branches(sizes: tuple[int, int]) -> None:
    """A suffix of less than nothing, a canvas of nothing."""
    with pytest.raises(ValueError, match="this is a bug"):
        BranchShape(*sizes)
