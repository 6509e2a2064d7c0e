"""How well a network reads samples it was not trained on, while it is trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import torch

from bench.demo.batches import lessons
from bench.demo.examples import Example, ExampleMaker
from bench.demo.network import Network
from engine.demo.family import Family, Split
from engine.demo.sample import Sampler


@dataclass(frozen=True, slots=True)
class Score:
    """Slots read rightly, of all; per family too."""

    right: Mapping[str, int]
    slots: Mapping[str, int]

    @property
    def accuracy(self) -> float:
        """Over all families."""
        return sum(self.right.values()) / sum(self.slots.values())

    def weakest(self, count: int) -> list[tuple[str, float]]:
        """Families and their accuracy, the lowest first."""
        each = {family: self.right[family] / slots for family, slots in self.slots.items()}
        return sorted(each.items(), key=lambda item: item[1])[:count]


def held_out_examples(
    families: Sequence[Family], maker: ExampleMaker, samples: int, split: Split = Split.HELD_OUT
) -> list[Example]:
    """Those of so many samples, the same ones every time."""
    random, sampler = Random(f"examination {split}"), Sampler(families, split)  # noqa: S311 - repeatable, not secret
    return [example for _ in range(samples) for example in maker.examples(random, sampler.sample(random))]


# Not compiled: it would be compiled anew for this, and is not run often enough to be worth that.
@torch.compiler.set_stance("force_eager")
@torch.no_grad()
def examine(network: Network, examples: Iterable[Example]) -> Score:
    """Read every slot of these."""
    network.eval()
    right: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    for lesson in lessons(list(examples)):
        targets = [target for example in lesson.examples for target in example.targets]
        for row, target in zip(network(lesson.batch).logits, targets, strict=True):
            if target.right is None:
                continue
            slots[target.family] += 1
            right[target.family] += int(row[list(target.label_token_ids)].argmax()) == target.right
    return Score(right, slots)
