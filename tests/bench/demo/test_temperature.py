"""The temperature that a trained network gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
import torch

from bench.demo.batches import lessons
from bench.demo.examples import Example
from bench.demo.network import Network
from bench.demo.temperature import calibrate


def as_it_says(network: Network, examples: Sequence[Example]) -> Iterator[Example]:
    """The examples with right answers drawn from what the network says of them, so that it is calibrated."""
    random = torch.Generator().manual_seed(3)
    for lesson in lessons(examples):
        rows = iter(network(lesson.batch).logits)
        for example in lesson.examples:
            said = [next(rows)[list(target.label_token_ids)].detach().softmax(-1) for target in example.targets]
            drawn = [int(torch.multinomial(shares, 1, generator=random)) for shares in said]
            targets = zip(example.targets, drawn, strict=True)
            yield replace(example, targets=tuple(replace(target, right=right) for target, right in targets))


def test_a_network_becomes_as_bold_as_it_is_right(make_network: Callable[[], Network], examples: list[Example]) -> None:
    """One that is calibrated stays nearly as it is; one that is twice as bold becomes what the first one became."""
    calibrated, bold = make_network().eval(), make_network().eval()
    seen = list(as_it_says(calibrated, examples[:40]))
    with torch.no_grad():
        bold.norm *= 2
    temperature = calibrate(calibrated, seen)
    assert temperature == pytest.approx(1, rel=0.2)
    assert calibrate(bold, seen) == pytest.approx(2 * temperature, rel=0.01)
    assert bold.norm.tolist() == pytest.approx(calibrated.norm.tolist(), rel=0.01)
