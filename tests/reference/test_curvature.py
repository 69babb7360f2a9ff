"""Power iteration finds the eigenvalue of the explicit Hessian (Shen et al. 2020, algorithm 1)."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pipelines.networks.curvature import top_eigenvalue


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_eigenvalue_of_largest_magnitude(seed: int) -> None:
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    inputs, labels = torch.randn(6, 4, dtype=torch.double), torch.randint(0, 3, (6,))
    first, second = network[0].weight, network[2].weight

    loss = nn.functional.cross_entropy(network(inputs), labels)
    gradients = torch.autograd.grad(loss, [first, second], create_graph=True)
    flat = torch.cat([one.flatten() for one in gradients])
    rows = [torch.autograd.grad(entry, [first, second], retain_graph=True) for entry in flat]
    explicit = torch.stack([torch.cat([one.flatten() for one in row]) for row in rows])
    values = torch.linalg.eigvalsh(explicit)
    expected = float(values[values.abs().argmax()])
    generator = torch.Generator().manual_seed(0)
    found = top_eigenvalue(gradients, [first, second], generator, iterations=2000, tolerance=1e-12)
    assert found == pytest.approx(expected, rel=1e-6)


def test_a_loss_without_curvature_has_none() -> None:
    weight = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad((weight * 2).sum(), [weight], create_graph=True)
    generator = torch.Generator().manual_seed(0)
    assert top_eigenvalue([gradient + 0 * weight], [weight], generator) == 0
