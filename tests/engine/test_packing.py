"""Which branches travel together, and that none is lost, moved or refused."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engine.bundle import BranchShape, BundleLayout
from engine.packing import Bundle, BundleLimits, pack
from engine.protocol import MAX_LABELS_PER_READ, Branch, CanvasSlot, ReadRequest
from tests.engine.reads import ReadMaker

LIMITS = BundleLimits(draft_tokens=512, total_tokens=1024, block_tokens=32)

sizes = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 40)), min_size=1, max_size=12)
limits = st.builds(
    BundleLimits,
    draft_tokens=st.integers(0, 400),
    total_tokens=st.integers(1, 600),
    block_tokens=st.sampled_from([16, 32]),
)


def packed(request: ReadRequest, limits: BundleLimits = LIMITS) -> list[Bundle]:
    """The bundles of a request."""
    return list(pack(request, limits))


@given(st.integers(0, 1000), st.integers(1, 300), sizes, limits)
def test_every_branch_travels_once_in_order(
    seed: int, prompt_tokens: int, sizes: list[tuple[int, int]], limits: BundleLimits
) -> None:
    """And behind what stood before it: prompt and suffix."""
    request = ReadMaker(seed).read(prompt_tokens, *sizes)
    arrived = [
        (bundle.prompt_token_ids + branch.suffix_token_ids, branch.canvas_token_ids, branch.canvas_slots)
        for bundle in pack(request, limits)
        for branch in bundle.branches
    ]
    assert arrived == [
        (request.prompt_token_ids + branch.suffix_token_ids, branch.canvas_token_ids, branch.canvas_slots)
        for branch in request.branches
    ]


@given(st.integers(0, 1000), st.integers(1, 300), sizes, limits)
def test_bundles_keep_to_the_limits(
    seed: int, prompt_tokens: int, sizes: list[tuple[int, int]], limits: BundleLimits
) -> None:
    """Only a read alone may exceed them, for it cannot be split; and one more branch would not have fitted."""
    bundles = packed(ReadMaker(seed).read(prompt_tokens, *sizes), limits)
    for bundle in bundles:
        assert len(bundle.branches) == 1 or bundle.layout.draft_tokens <= limits.draft_tokens
        assert len(bundle.branches) == 1 or prompt_tokens + bundle.layout.draft_tokens <= limits.total_tokens
        assert len(bundle.label_token_ids) <= MAX_LABELS_PER_READ
    for bundle, after in pairwise(bundles):
        whole = with_more(prompt_tokens, bundle, after, limits.block_tokens)
        assert whole > limits.draft_tokens or prompt_tokens + whole > limits.total_tokens


def with_more(prompt_tokens: int, bundle: Bundle, after: Bundle, block_tokens: int) -> int:
    """The width of a bundle's draft with the first branch of the next one as well; suffixes are back behind prompts."""
    shapes = [
        BranchShape(
            len(branch.suffix_token_ids) + len(one.prompt_token_ids) - prompt_tokens, len(branch.canvas_token_ids)
        )
        for one, branch in [*((bundle, branch) for branch in bundle.branches), (after, after.branches[0])]
    ]
    return BundleLayout(prompt_tokens, tuple(shapes), block_tokens).draft_tokens


def test_what_fits_is_one_bundle() -> None:
    """Sixteen draws of a canvas of 16 behind 188 tokens: sixteen spans of at most 64 tokens."""
    (bundle,) = packed(ReadMaker(0).read(188, *[(0, 16)] * 8))
    assert len(bundle.branches) == 8
    assert bundle.layout.draft_tokens <= 512


def test_what_does_not_fit_is_split_as_little_as_possible() -> None:
    """Greedily: full bundles first, the rest in the last."""
    bundles = packed(ReadMaker(0).read(64, *[(0, 32)] * 20))
    assert [len(bundle.branches) for bundle in bundles] == [16, 4]


def test_no_room_for_bundles_means_single_reads() -> None:
    """As where reads are not fused."""
    request = ReadMaker(0).read(50, (10, 8), (0, 8), (3, 8))
    bundles = packed(request, dataclasses.replace(LIMITS, draft_tokens=0))
    assert [len(bundle.branches) for bundle in bundles] == [1, 1, 1]


def test_a_context_without_room_splits() -> None:
    """Prompt and draft together, not the draft alone, have to fit."""
    request = ReadMaker(0).read(900, *[(0, 16)] * 6)
    assert [len(bundle.branches) for bundle in packed(request)] == [4, 2]


def test_a_single_branch_has_its_suffix_in_the_prompt() -> None:
    """Where the prefix cache can keep it."""
    request = ReadMaker(0).read(50, (10, 8))
    (bundle,) = packed(request)
    assert bundle.prompt_token_ids == request.prompt_token_ids + request.branches[0].suffix_token_ids
    assert bundle.draft_token_ids == list(request.branches[0].canvas_token_ids)
    assert bundle.branches[0].suffix_token_ids == ()


def labelled(*labels: int) -> Branch:
    """A branch with one slot of the given labels."""
    return Branch(canvas_token_ids=(1,), canvas_slots=(CanvasSlot(position=0, label_token_ids=labels),))


def test_labels_that_do_not_fit_split() -> None:
    """vLLM takes 128 labels a request; shared ones count once."""
    many = tuple(range(100, 200))
    request = ReadRequest(
        request_id="r",
        prompt_token_ids=(1,),
        branches=(labelled(*many), labelled(*many[:50]), labelled(*range(300, 340)), labelled(5, 3)),
    )
    bundles = packed(request)
    assert [len(bundle.branches) for bundle in bundles] == [2, 2]
    assert bundles[1].label_token_ids == (3, 5, *range(300, 340))


def test_slots_are_found_in_the_draft() -> None:
    """The token at a slot's offset in the draft is the one at its position in the canvas."""
    request = ReadMaker(3).read(45, (5, 9), (0, 4), (17, 30))
    (bundle,) = packed(request)
    at_slots = [bundle.draft_token_ids[offset] for offset in bundle.slot_offsets]
    assert at_slots == [b.canvas_token_ids[slot.position] for b in request.branches for slot in b.canvas_slots]
