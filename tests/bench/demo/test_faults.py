"""Canvases with a fault."""

from __future__ import annotations

from random import Random

import pytest

from app.canvas.plan import Planner
from app.tokenizer import THOUGHT_OPEN, CheckpointTokenizer
from bench.demo.batches import lesson
from bench.demo.examples import Concepts, Example, ExampleMaker, TokenText
from bench.demo.faults import Fault, with_fault
from engine.demo.family import Split, load_families
from engine.demo.sample import Sampler


@pytest.fixture(scope="module")
def maker(planner: Planner, tokenizer: CheckpointTokenizer) -> ExampleMaker:
    """Lays samples out with the demo's tokenizer."""
    return ExampleMaker(planner, Concepts(load_families()), TokenText(tokenizer._template))


@pytest.fixture(scope="module")
def example(maker: ExampleMaker) -> Example:
    """One with several slots."""
    sampler, random = Sampler(load_families(), Split.TRAINED), Random(2)
    drawn = (example for _ in range(100) for example in maker.examples(random, sampler.sample(random)))
    return next(example for example in drawn if len(example.targets) > 2)


@pytest.mark.parametrize("fault", Fault)
def test_no_label_is_right(example: Example, maker: ExampleMaker, fault: Fault) -> None:
    """Every one is as likely as the others."""
    broken = with_fault(example, fault, maker.thought_tokens)
    assert all(target.right is None for target in broken.targets)
    assert all(target.likely_token_ids == target.label_token_ids for target in broken.targets)
    assert [target.label_token_ids for target in broken.targets] == [one.label_token_ids for one in example.targets]


def test_a_causal_canvas(example: Example, maker: ExampleMaker) -> None:
    """Its rows see the prompt and what is before them; all others see the whole canvas."""
    broken = with_fault(example, Fault.CAUSAL, maker.thought_tokens)
    bias = lesson([example, broken]).batch.attention_bias()[:, 0]
    prompt = len(example.prompt_token_ids)
    row = prompt + example.targets[0].position
    assert (bias[0, row] == 0).all()
    assert (bias[1, row, : row + 1] == 0).all()
    assert (bias[1, row, row + 1 :] < 0).all()
    assert (bias[0, :prompt] == bias[1, :prompt]).all()


def test_slots_off_by_one(example: Example, maker: ExampleMaker) -> None:
    broken = with_fault(example, Fault.SLOTS_OFF_BY_ONE, maker.thought_tokens)
    assert [one.position - 1 for one in broken.targets] == [one.position for one in example.targets]


def test_a_thought_in_the_canvas(example: Example, maker: ExampleMaker, tokenizer: CheckpointTokenizer) -> None:
    """It moves from the end of the prompt to the canvas, and the slots move with it."""
    broken = with_fault(example, Fault.THOUGHT_IN_CANVAS, maker.thought_tokens)
    whole = (*example.prompt_token_ids, *example.canvas_token_ids)
    assert (*broken.prompt_token_ids, *broken.canvas_token_ids) == whole
    assert tokenizer.decode(broken.canvas_token_ids).startswith(THOUGHT_OPEN)
    for moved, slot in zip(broken.targets, example.targets, strict=True):
        assert broken.canvas_token_ids[moved.position] == example.canvas_token_ids[slot.position]
