"""How well a network reads samples it was not trained on, while it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch

from bench.demo.batches import lessons
from bench.demo.examples import Example, ExampleMaker
from bench.demo.network import Network
from bench.demo.training import count_right
from engine.demo.family import Family, Split
from engine.demo.sample import Sampler


def unseen_examples(families: Sequence[Family], maker: ExampleMaker, split: Split, samples: int) -> list[Example]:
    """Those of so many samples of a split, the same ones every time."""
    random, sampler = Random("examination"), Sampler(families, split)  # noqa: S311 - to be repeatable, not secret
    return [example for _ in range(samples) for example in maker.examples(random, sampler.sample(random))]


# Not compiled: it would be compiled anew for this, and is not run often enough to be worth that.
@torch.compiler.set_stance("force_eager")
@torch.no_grad()
def examine(network: Network, examples: Sequence[Example]) -> float:
    """The share of these examples' slots that are read rightly, of those where a label is right."""
    network.eval()
    right = sum(count_right(network(lesson.batch).logits, lesson) for lesson in lessons(examples))
    return right / sum(target.right is not None for example in examples for target in example.targets)
