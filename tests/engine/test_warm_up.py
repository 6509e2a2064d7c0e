"""Reads that nobody asked for: of the shape they should be, and different from each other."""

from __future__ import annotations

import pytest

from engine.warm_up import warm_up_request
from tests.engine.reads import FIRST_TOKEN_ID, LAST_TOKEN_ID

# As many as DECIDE_MAX_NUM_SEQS may be.
NUMBERS = range(256)


@pytest.mark.parametrize("branches", [1, 5])
@pytest.mark.parametrize("canvas_tokens", [1, 2, 64])
@pytest.mark.parametrize("prompt_tokens", [1, 8, 200])
def test_the_shape(prompt_tokens: int, canvas_tokens: int, branches: int) -> None:
    """As asked; the smallest too."""
    request = warm_up_request(0, prompt_tokens, canvas_tokens, branches=branches)
    assert len(request.prompt_token_ids) == prompt_tokens
    assert [len(branch.canvas_token_ids) for branch in request.branches] == [canvas_tokens] * branches
    assert all(branch.suffix_token_ids == () for branch in request.branches)


def test_what_most_reads_are() -> None:
    """One branch, logprobs over the labels; the others have to be asked for."""
    request = warm_up_request(0, 8, 4)
    assert (len(request.branches), request.is_constrained) == (1, True)
    assert warm_up_request(0, 8, 4, is_constrained=False).is_constrained is False


def test_tokens_are_ordinary() -> None:
    """No control token, and none that the demo vocabulary lacks, among prompts, canvases and labels."""
    requests = [warm_up_request(number, 200, 64) for number in NUMBERS]
    prompts = {token for request in requests for token in request.prompt_token_ids}
    branches = [branch for request in requests for branch in request.branches]
    used = prompts.union(*(branch.label_token_ids | set(branch.canvas_token_ids) for branch in branches))
    assert used <= set(range(FIRST_TOKEN_ID, LAST_TOKEN_ID + 1))


def test_prompts_are_not_shared() -> None:
    """Not even their first token: a read that the prefix cache spares does not run the shape it is there for."""
    assert len({warm_up_request(number, 200, 4).prompt_token_ids[0] for number in NUMBERS}) == len(NUMBERS)


def test_labels_differ() -> None:
    """A step of reads with different labels is the common case, and takes another way through the sampler."""
    labels = {branch.label_token_ids for n in NUMBERS for branch in warm_up_request(n, 8, 4).branches}
    assert len(labels) == len(NUMBERS)


def test_ids_are_told_apart() -> None:
    """They run at the same time; numbers and shapes are in their names."""
    shapes = [(number, prompt, canvas) for number in range(3) for prompt in (8, 9) for canvas in (4, 5)]
    assert len({warm_up_request(*shape).request_id for shape in shapes}) == len(shapes)
