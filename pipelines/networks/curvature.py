"""The largest eigenvalue of a loss's Hessian, by power iteration (Shen et al. 2020, Q-BERT, §3.1, algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def top_eigenvalue(
    gradients: Sequence[Tensor],
    weights: Sequence[Tensor],
    generator: torch.Generator,
    *,
    iterations: int = 20,
    tolerance: float = 1e-3,
) -> float:
    """The eigenvalue of largest magnitude of the Hessian with respect to `weights`, by power iteration.

    `gradients` are the loss's gradients with respect to them, made with `create_graph=True`. Ends when the value moves
    by less than `tolerance` of itself. The first vector is drawn from `generator`, a CPU generator.
    """
    vector = _normalised([torch.randn(one.shape, generator=generator).to(one) for one in weights])
    value = 0.0
    for _ in range(iterations):
        product = torch.autograd.grad(gradients, weights, vector, retain_graph=True, materialize_grads=True)
        previous, value = value, _dot(product, vector)
        if abs(value - previous) <= tolerance * abs(value):
            break
        vector = _normalised(product)
    return value


def _dot(first: Sequence[Tensor], second: Sequence[Tensor]) -> float:
    return float(torch.stack([(one * other).sum() for one, other in zip(first, second, strict=True)]).sum())


def _normalised(vectors: Sequence[Tensor]) -> list[Tensor]:
    norm = torch.nn.utils.get_total_norm(list(vectors))
    return [one / norm if norm > 0 else one for one in vectors]
