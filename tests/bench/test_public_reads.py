"""Public cases as reads: new to every prefix cache, and of one length in all variations."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.canvas.plan import Planner
from bench.public_cases import load_public_cases
from bench.public_reads import PublicReads, instructions, largest_fitting
from bench.read_set import count_reads

BLOCK_TOKENS = 32


@pytest.fixture(scope="module")
def reads(planner: Planner) -> PublicReads:
    """All of them."""
    return PublicReads(planner, load_public_cases())


def test_every_case_is_a_read_within_the_context(reads: PublicReads) -> None:
    requests = [reads.read(number, 0) for number in range(reads.size)]
    lengths = [len(asked.prompt_token_ids) + len(asked.branches[0].canvas_token_ids) for asked in requests]
    assert len({asked.request_id for asked in requests}) == 240
    assert max(lengths) <= reads.planner.max_model_len
    assert reads.count_cut() == 0


def test_variations_differ_in_the_first_block_and_in_nothing_that_costs(reads: PublicReads) -> None:
    requests = [reads.read(number, variation) for number in (0, 1, 239) for variation in (0, 1, 2, 3)]
    assert len({asked.prompt_token_ids[:BLOCK_TOKENS] for asked in requests}) == len(requests)
    for number in range(3):
        assert len({len(asked.prompt_token_ids) for asked in requests[4 * number : 4 * number + 4]}) == 1


def test_a_read_asks_every_question_of_its_case(reads: PublicReads) -> None:
    slots = reads.read(0, 0).branches[0].canvas_slots
    assert [len(slot.label_token_ids) for slot in slots] == [2] * 8 + [4] * 4


def test_a_case_that_is_too_long_loses_the_end_of_its_state(reads: PublicReads) -> None:
    whole = reads.read(0, 0)
    canvas_tokens = len(whole.branches[0].canvas_token_ids)
    limit = len(whole.prompt_token_ids) + canvas_tokens - 10
    planner = dataclasses.replace(reads.planner, max_model_len=limit)
    narrow = PublicReads(planner, reads.cases[:1])
    cut = narrow.read(0, 0)
    assert limit - 3 <= len(cut.prompt_token_ids) + canvas_tokens <= limit
    assert narrow.count_cut() == 1


@given(st.integers(0, 500), st.integers(0, 600))
def test_largest_fitting(limit: int, bound: int) -> None:
    assert largest_fitting(limit, lambda number: number <= bound) == min(limit, bound)


def test_instructions_are_new_and_of_one_length() -> None:
    texts = [instructions(number, variation) for number in (0, 7, 239) for variation in (0, 9, 10)]
    assert len(set(texts)) == len(texts)
    assert len(set(map(len, texts))) == 1


def test_as_many_reads_as_there_are(reads: PublicReads) -> None:
    assert [count_reads(reads, wanted) for wanted in (24, 240, 1000)] == [24, 240, 240]
