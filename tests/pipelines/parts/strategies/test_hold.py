"""Strategies that pull the weights back to their start, against the papers' equations in float64."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import pytest
import torch

from pipelines.parts.optimizers.algorithms.recall_adamw import RecallAdamW
from pipelines.parts.strategies.full import Full
from pipelines.parts.strategies.gradual_unfreezing import GradualUnfreezing
from pipelines.parts.strategies.l2_to_start import L2ToStart
from pipelines.parts.strategies.recadam import RecAdam
from tests.pipelines.parts.strategies.harness import BETAS, EPSILON, classifier, train

OPTIONS: dict[str, Any] = {"betas": BETAS, "eps": EPSILON}
EXACT = 1e-12
"""Relative, in float64."""


def parameter(seed: int) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))


def run(optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter], steps: int, rate: float) -> None:
    """Steps on gradients 2w + sin t, at a rate that halves after three."""
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate / (1 if step <= 3 else 2)
        for value in parameters:
            value.grad = 2 * value.detach() + math.sin(step)
        optimizer.step()


def test_recadam_is_the_papers_equation() -> None:
    rate, pull, k, middle = 1e-2, 0.3, 0.9, 3.0
    value = parameter(0)
    start = value.detach().clone()
    groups = [{"params": [value], "lr": rate, "weight_decay": 0.0, "is_head": False}]
    run(RecallAdamW(groups, pull=pull, steepness=k, middle=middle, **OPTIONS), [value], 6, rate)

    theta, m, v = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    gamma = pull / rate
    for t in range(1, 7):
        eta = rate / (1 if t <= 3 else 2)
        g = 2 * theta + math.sin(t)
        m, v = BETAS[0] * m + (1 - BETAS[0]) * g, BETAS[1] * v + (1 - BETAS[1]) * g * g
        adam = (m / (1 - BETAS[0] ** t)) / ((v / (1 - BETAS[1] ** t)).sqrt() + EPSILON)
        weight = 1 / (1 + math.exp(-k * (t - middle)))
        theta = theta - eta * (weight * adam + (1 - weight) * gamma * (theta - start))
    assert torch.allclose(value.detach(), theta, rtol=EXACT, atol=EXACT)
    assert not torch.allclose(value.detach(), start, rtol=1e-3)


def test_recadam_without_a_pull_is_adamw_and_so_is_it_on_the_head() -> None:
    mine, theirs = [parameter(0), parameter(1)], [parameter(0), parameter(1)]
    groups = [{"params": [p], "lr": 1e-2, "weight_decay": 0.1} for p in mine]
    groups[0]["is_head"], groups[1]["is_head"] = False, True
    # t₀ long past for the body: λ = 1
    run(RecallAdamW(groups, pull=0.5, steepness=1.0, middle=-100.0, **OPTIONS), mine, 5, 1e-2)
    run(torch.optim.AdamW(theirs, lr=1e-2, weight_decay=0.1, **OPTIONS), theirs, 5, 1e-2)
    for a, b in zip(mine, theirs, strict=True):
        assert torch.allclose(a, b, rtol=EXACT, atol=EXACT)
    head = parameter(1)
    only_head = [{"params": [head], "lr": 1e-2, "weight_decay": 0.1, "is_head": True}]
    run(RecallAdamW(only_head, pull=0.5, steepness=1.0, middle=1e9, **OPTIONS), [head], 5, 1e-2)
    assert torch.allclose(head, theirs[1], rtol=EXACT, atol=EXACT), "never pulled, though λ = 0 throughout"


def test_the_body_stays_at_its_start_until_the_task_counts() -> None:
    value = parameter(0)
    start = value.detach().clone()
    groups = [{"params": [value], "lr": 1e-2, "weight_decay": 0.1, "is_head": False}]
    optimizer = RecallAdamW(groups, pull=0.1, steepness=1.0, middle=1000.0, **OPTIONS)
    run(optimizer, [value], 20, 1e-2)
    assert torch.allclose(value, start, atol=1e-12)
    assert [round(optimizer.annealing(t), 6) for t in (0, 1000, 2000)] == [0.0, 0.5, 1.0]


def test_recadam_resumes_exactly_and_its_checkpoint_holds_no_start() -> None:
    def fresh() -> tuple[torch.nn.Parameter, RecallAdamW]:
        value = parameter(0)
        groups = [{"params": [value], "lr": 1e-2, "weight_decay": 0.1, "is_head": False}]
        return value, RecallAdamW(groups, pull=0.2, steepness=0.5, middle=4.0, **OPTIONS)

    whole, optimizer = fresh()
    run(optimizer, [whole], 3, 1e-2)
    saved, weights = deepcopy(optimizer.state_dict()), whole.detach().clone()
    run(optimizer, [whole], 3, 1e-2)
    # built on the start's weights; those of the checkpoint come later
    resumed, second = fresh()
    second.load_state_dict(saved)
    with torch.no_grad():
        resumed.copy_(weights)
    run(second, [resumed], 3, 1e-2)
    assert torch.equal(whole, resumed)
    assert {key for state in saved["state"].values() for key in state} == {"step", "exp_avg", "exp_avg_sq"}


def test_a_layer_that_does_not_train_yet_is_neither_moved_nor_pulled() -> None:
    trained = train([RecAdam(), GradualUnfreezing()], steps=2)
    assert not any(name.startswith("bert.encoder.layer.0.") for name in trained.moved[1])
    assert any(name.startswith("bert.encoder.layer.1.") for name in trained.moved[1])


def test_recadam_ends_nearer_to_its_start_than_plain_training() -> None:
    start = dict(classifier().named_parameters())

    def distance(network: torch.nn.Module) -> float:
        pairs = [(p.detach(), start[n].detach()) for n, p in network.named_parameters() if n.startswith("bert.")]
        return math.sqrt(sum(float((a - b).square().sum()) for a, b in pairs))

    held, free = train([RecAdam(middle=0.8)], steps=8).network, train([Full()], steps=8).network
    assert distance(held) < 0.7 * distance(free)


def test_the_gradient_of_l2_to_start_is_alpha_times_the_distance_and_beta_times_the_head() -> None:
    network = classifier().double()
    strategy = L2ToStart(alpha=0.3, beta=0.2)
    start = strategy.begin(network)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn(value.shape, dtype=torch.float64))
    terms = strategy.penalty(network, start)
    assert set(terms) == {"l2_to_start", "l2_of_head"}
    sum(terms.values()).backward()  # type: ignore[union-attr, no-untyped-call]
    for name, value in network.named_parameters():
        assert value.grad is not None
        expected = 0.3 * (value - start[name]) if name.startswith("bert.") else 0.2 * value
        assert torch.allclose(value.grad, expected.detach(), rtol=EXACT, atol=EXACT), name
    squares = sum(float((v - start[n]).detach().square().sum()) for n, v in network.named_parameters() if n in start)
    assert float(terms["l2_to_start"].detach()) == pytest.approx(0.15 * squares, rel=EXACT)


def test_l2_to_start_counts_only_what_trains() -> None:
    network = classifier()
    strategy = L2ToStart()
    start = strategy.begin(network)
    network.bert.requires_grad_(False)
    assert set(strategy.penalty(network, start)) == {"l2_of_head"}
    assert set(strategy.penalty(network.requires_grad_(True), start)) == {"l2_to_start", "l2_of_head"}
    assert set(L2ToStart(beta=0).penalty(network, start)) == {"l2_to_start"}
