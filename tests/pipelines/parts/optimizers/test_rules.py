"""Every optimizer takes the step of its paper: against another implementation, or the equations in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from pipelines.parts.optimizers import Optimizer
from pipelines.parts.optimizers.algorithms.layerwise_adam import LayerwiseAdam

STEPS = 6


def parameters(dtype: torch.dtype = torch.float32) -> list[nn.Parameter]:
    """A matrix, and a vector as of a normalisation."""
    generator = torch.Generator().manual_seed(3)
    return [nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype)) for shape in ((7, 5), (5,))]


def gradients(dtype: torch.dtype = torch.float32, scale: float = 0.1) -> list[list[Tensor]]:
    """Gradients of each parameter at each step."""
    generator = torch.Generator().manual_seed(4)
    return [
        [scale * torch.randn(shape, generator=generator, dtype=dtype) for shape in ((7, 5), (5,))] for _ in range(STEPS)
    ]


def groups(weights: list[nn.Parameter], lr: float, decay: float) -> list[dict[str, Any]]:
    """One group that decays and one that does not, as the training loop makes them."""
    return [
        {"params": [weights[0]], "lr": lr, "weight_decay": decay, "is_head": False},
        {"params": [weights[1]], "lr": lr, "weight_decay": 0.0, "is_head": True},
    ]


def run(optimizer: torch.optim.Optimizer, weights: list[nn.Parameter], steps: list[list[Tensor]]) -> list[Tensor]:
    for each in steps:
        for weight, gradient in zip(weights, each, strict=True):
            weight.grad = gradient.clone()
        optimizer.step()
    return [weight.detach() for weight in weights]


def trained(named: dict[str, Any], dtype: torch.dtype = torch.float32, scale: float = 0.1) -> list[Tensor]:
    """The parameters after a few steps of the optimizer that a recipe names so."""
    chosen, weights = Optimizer.model_validate(named), parameters(dtype)
    optimizer = chosen.create(groups(weights, chosen.lr, chosen.weight_decay))
    return run(optimizer, weights, gradients(dtype, scale))


def test_the_default_is_the_adamw_of_every_recipe_so_far() -> None:
    chosen = Optimizer.model_validate({"lr": 2e-3, "betas": [0.9, 0.999], "weight_decay": 0.1})
    optimizer = chosen.create(groups(parameters(), chosen.lr, 0.1))
    assert type(optimizer) is torch.optim.AdamW
    first = optimizer.param_groups[0]
    assert (first["betas"], first["eps"], first["fused"]) == ((0.9, 0.999), 1e-6, True)
    weights = parameters()
    plain = torch.optim.AdamW(groups(weights, 2e-3, 0.1), betas=(0.9, 0.999), eps=1e-6, fused=True)
    expected = run(plain, weights, gradients())
    ours = trained({"lr": 2e-3, "betas": [0.9, 0.999], "weight_decay": 0.1})
    assert all(map(torch.equal, ours, expected))


@pytest.mark.parametrize("scale", [0.1, 1e-5])
def test_adafactor_is_that_of_transformers_with_relative_steps(scale: float) -> None:
    """Gradients of 1e-5 have squares far below torch's own ε₁, which would change the direction."""
    weights = parameters()
    expected = run(
        transformers.Adafactor(weights, relative_step=True, scale_parameter=True, warmup_init=False),
        weights,
        gradients(scale=scale),
    )
    for ours, theirs in zip(trained({"name": "adafactor"}, scale=scale), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-7)


def test_adafactor_leaves_rows_that_never_had_a_gradient() -> None:
    weights = parameters()
    before = weights[0].detach().clone()
    steps = gradients()
    for each in steps:
        each[0][3:] = 0
    optimizer = Optimizer.model_validate("adafactor").create(groups(weights, 1e-2, 0.0))
    after = run(optimizer, weights, steps)
    assert torch.equal(after[0][3:], before[3:]) and not torch.equal(after[0][:3], before[:3])


def test_lamb_is_algorithm_2_of_its_paper() -> None:
    rate, decay, (first, second), epsilon = 0.02, 0.05, (0.9, 0.999), 1e-6
    expected = []
    for index, (theta, λ) in enumerate(zip(parameters(torch.float64), (decay, 0.0), strict=True)):
        x = theta.detach().clone()
        m = v = torch.zeros_like(x)
        for t, each in enumerate(gradients(torch.float64), 1):
            g = each[index]
            m, v = first * m + (1 - first) * g, second * v + (1 - second) * g**2
            u = (m / (1 - first**t)) / ((v / (1 - second**t)).sqrt() + epsilon) + λ * x
            # layer adaptation for matrices only, as in the authors' code
            x = x - rate * (x.norm() / u.norm() if x.ndim > 1 else 1.0) * u
        expected.append(x)
    ours = trained({"name": "lamb", "lr": rate, "weight_decay": decay}, torch.float64)
    for value, right in zip(ours, expected, strict=True):
        torch.testing.assert_close(value, right, rtol=1e-12, atol=1e-14)


def test_lamb_moves_weights_that_are_zero() -> None:
    table = nn.Parameter(torch.zeros(4, 3))
    optimizer = LayerwiseAdam([{"params": [table], "lr": 0.1, "weight_decay": 0.0}], betas=(0.9, 0.999), eps=1e-6)
    table.grad = torch.ones(4, 3)
    optimizer.step()
    torch.testing.assert_close(table.detach(), torch.full((4, 3), -0.1), rtol=1e-4, atol=1e-6)


def test_sgd_is_the_gradient_times_the_rate() -> None:
    expected = [weight.detach() for weight in parameters(torch.float64)]
    velocity = [torch.zeros_like(one) for one in expected]
    for each in gradients(torch.float64):
        velocity = [0.9 * old + gradient for old, gradient in zip(velocity, each, strict=True)]
        expected = [one - 0.05 * v for one, v in zip(expected, velocity, strict=True)]
    ours = trained({"name": "sgd", "lr": 0.05, "momentum": 0.9}, torch.float64)
    for value, right in zip(ours, expected, strict=True):
        torch.testing.assert_close(value, right, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("initial", [0.0, 1.0])
def test_adagrad_divides_by_the_root_of_the_sum_of_squares(initial: float) -> None:
    expected = [weight.detach() for weight in parameters(torch.float64)]
    sums = [torch.full_like(one, initial) for one in expected]
    for each in gradients(torch.float64):
        sums = [old + gradient**2 for old, gradient in zip(sums, each, strict=True)]
        expected = [one - 0.05 * g / s.sqrt() for one, g, s in zip(expected, each, sums, strict=True)]
    ours = trained({"name": "adagrad", "initial": initial}, torch.float64)
    for value, right in zip(ours, expected, strict=True):
        torch.testing.assert_close(value, right, rtol=1e-8, atol=1e-12)


def looked_up(optimizer: torch.optim.Optimizer, table: nn.Embedding) -> Tensor:
    """The table after steps in which only some of its rows are looked up, one of them twice."""
    for ids in ([0, 1, 1], [2, 1], [0, 4], [1, 4]):
        optimizer.zero_grad()
        table(torch.tensor(ids)).square().sum().backward()
        optimizer.step()
    return table.weight.detach()


def table(*, sparse: bool) -> nn.Embedding:
    torch.manual_seed(0)
    return nn.Embedding(6, 3, sparse=sparse)


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_sparse_gradients_give_the_same_table(name: str) -> None:
    results = []
    for sparse in (False, True):
        chosen, words = Optimizer.model_validate({"name": name, "sparse": sparse}), table(sparse=sparse)
        assert chosen.sparse_gradients is sparse
        results.append(looked_up(chosen.create([{"params": [words.weight], "lr": 0.1}]), words))
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7)
    assert torch.equal(results[1][[3, 5]], table(sparse=True).weight.detach()[[3, 5]])


def test_sparse_adam_moves_the_rows_that_were_looked_up_as_an_adam_of_their_own() -> None:
    chosen, words = Optimizer.model_validate("sparse_adam"), table(sparse=True)
    after = looked_up(chosen.create([{"params": [words.weight], "lr": 0.1}]), words)
    start = table(sparse=True).weight.detach().double()
    x, (first, second) = start[1].clone(), (0.9, 0.999)  # the row 1 occurs in the steps 1, 2 and 4, twice in step 1
    m = v = torch.zeros(3, dtype=torch.float64)
    for t, times in ((1, 2), (2, 1), (4, 1)):
        g = 2 * times * x
        m, v = first * m + (1 - first) * g, second * v + (1 - second) * g**2
        x = x - 0.1 * (m / (1 - first**t)) / ((v / (1 - second**t)).sqrt() + 1e-8)
    torch.testing.assert_close(after[1].double(), x, rtol=1e-5, atol=1e-7)
    assert torch.equal(after[[3, 5]].double(), start[[3, 5]])


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"name": "sgd", "sparse": True, "momentum": 0.9}, "momentum moves rows without a gradient too"),
        ({"name": "sgd", "sparse": True, "weight_decay": 0.1}, "set weight_decay: 0"),
        ({"name": "adagrad", "sparse": True, "weight_decay": 0.1}, "set weight_decay: 0"),
        ({"name": "sparse_adam", "weight_decay": 0.1}, "set weight_decay: 0"),
        ({"name": "sgd", "nesterov": True}, "nesterov needs a momentum"),
    ],
)
def test_options_that_contradict_each_other_are_refused(named: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=f"optimizer '{named['name']}': .*{reason}"):
        Optimizer.model_validate(named)
