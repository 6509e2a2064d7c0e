"""One temperature for everything a network reads: fitted once it is trained, and then part of its weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from bench.demo.batches import lessons
from bench.demo.examples import Example
from bench.demo.network import SOFTCAP, Network
from bench.reliability import best_temperature


# Not compiled: it would be compiled anew for this, and is run once.
@torch.compiler.set_stance("force_eager")
@torch.no_grad()
def calibrate(network: Network, examples: Sequence[Example]) -> float:
    """Have the network's probabilities be as bold as it is right about these examples; returns the temperature.

    It divides the last norm's weight, so it needs no place of its own in the checkpoint. Temperature scaling after Guo
    et al. 2017, https://arxiv.org/abs/1706.04599, by the loss over each slot's own labels, as the service reads them.
    """
    network.eval()
    own, rights = zip(*_slots(network, examples), strict=True)
    right = torch.tensor(rights)
    # Padded with what no temperature makes likely.
    logits = pad_sequence(list(own), batch_first=True, padding_value=-torch.inf)

    def loss(tried: float) -> float:
        capped = SOFTCAP * torch.tanh(logits / (SOFTCAP * tried))
        return float(functional.cross_entropy(capped.where(logits.isfinite(), -torch.inf), right))

    temperature = best_temperature(loss)
    network.norm /= temperature
    return temperature


def _slots(network: Network, examples: Sequence[Example]) -> Iterator[tuple[Tensor, int]]:
    """Logits of each slot's labels before they are capped, and which is right; slots where one is."""
    for lesson in lessons(examples):
        targets = (target for example in lesson.examples for target in example.targets)
        for row, target in zip(network(lesson.batch).logits, targets, strict=True):
            if target.right is not None:
                yield SOFTCAP * torch.atanh(row[list(target.label_token_ids)] / SOFTCAP), target.right
