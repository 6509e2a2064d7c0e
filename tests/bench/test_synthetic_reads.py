"""Synthetic reads: exact lengths, reproducible, never twice the same."""

from __future__ import annotations

import pytest

from app.tokenizer import CheckpointTokenizer
from bench.read_set import count_reads
from bench.synthetic_reads import SLOT_LABELS, TOKEN_IDS, SyntheticReads
from engine.packing import alone

BLOCK_TOKENS = 32


@pytest.mark.parametrize("prompt_tokens", [32, 188, 1250])
def test_shape(prompt_tokens: int) -> None:
    asked = SyntheticReads(prompt_tokens=prompt_tokens).read(3, 1)
    (branch,) = asked.branches
    assert len(asked.prompt_token_ids) == prompt_tokens
    assert (len(branch.suffix_token_ids), len(branch.canvas_token_ids)) == (0, 16)
    assert [slot.label_token_ids for slot in branch.canvas_slots] == list(SLOT_LABELS)


def test_the_same_read_is_the_same_every_time() -> None:
    assert SyntheticReads(prompt_tokens=188).read(3, 1) == SyntheticReads(prompt_tokens=188).read(3, 1)


def test_numbers_variations_seeds_and_shapes_share_no_block_and_no_id() -> None:
    reads = [SyntheticReads(prompt_tokens=188, seed=seed, branches=wide) for seed in (0, 1) for wide in (1, 4)]
    requests = [one.read(number, variation) for one in reads for number in range(50) for variation in (0, 1)]
    assert len({asked.prompt_token_ids[:BLOCK_TOKENS] for asked in requests}) == len(requests)
    assert len({asked.request_id for asked in requests}) == len(requests)


def test_tokens_are_ordinary(tokenizer: CheckpointTokenizer) -> None:
    assert not tokenizer.control_token_ids & set(TOKEN_IDS)
    assert TOKEN_IDS[-1] < tokenizer.vocabulary_size


def test_branches_alone_are_single_reads_behind_prompt_and_suffix() -> None:
    bundle = SyntheticReads(prompt_tokens=100, branches=3, suffix_tokens=40).read(0, 0)
    singles = alone(bundle)
    assert len({asked.request_id for asked in singles}) == 3
    for asked, branch in zip(singles, bundle.branches, strict=True):
        assert asked.prompt_token_ids == bundle.prompt_token_ids + branch.suffix_token_ids
        assert asked.branches == (branch.without_suffix(),)


def test_there_are_as_many_as_wanted() -> None:
    assert count_reads(SyntheticReads(prompt_tokens=188), 1000) == 1000
