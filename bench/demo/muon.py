"""Muon: momentum whose update is orthogonalised, for matrices. https://kellerjordan.github.io/posts/muon/"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
MOMENTUM, WEIGHT_DECAY = 0.95, 0.01
# Makes an update about as large as AdamW's, whatever the matrix's shape.
UPDATE_SCALE = 0.2


class Muon(torch.optim.Optimizer):
    """For parameters of two dimensions, or three of which the first counts matrices."""

    def __init__(self, parameters: Iterable[Tensor], lr: float) -> None:
        super().__init__(parameters, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Update every parameter that has a gradient; those of one shape together."""
        assert closure is None
        for group in self.param_groups:
            by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    by_shape[parameter.shape].append(parameter)
            for parameters in by_shape.values():
                self._update(parameters, group["lr"])

    def _update(self, parameters: list[Tensor], lr: float) -> None:
        updates = orthogonalise(torch.stack([self._with_momentum(parameter) for parameter in parameters]))
        scale = UPDATE_SCALE * max(updates.shape[-2:]) ** 0.5
        for parameter, update in zip(parameters, updates, strict=True):
            parameter.mul_(1 - lr * WEIGHT_DECAY).add_(update, alpha=-lr * scale)

    def _with_momentum(self, parameter: Tensor) -> Tensor:
        """Nesterov's: the gradient and where the average of gradients goes."""
        state = self.state[parameter]
        if not state:
            state["momentum"] = torch.zeros_like(parameter)
        momentum: Tensor = state["momentum"]
        momentum.lerp_(parameter.grad, 1 - MOMENTUM)
        return parameter.grad.lerp(momentum, MOMENTUM)


def orthogonalise(matrices: Tensor) -> Tensor:
    """The nearest matrices with all singular values near 1, by Newton-Schulz iteration."""
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    result = matrices.mT if is_tall else matrices
    result = result / (result.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        square = result @ result.mT
        result = a * result + (b * square + c * square @ square) @ result
    return result.mT if is_tall else result
