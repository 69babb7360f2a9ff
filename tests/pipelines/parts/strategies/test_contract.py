"""What every strategy promises, on every body a classifier can have."""

from __future__ import annotations

import pytest
import torch

from pipelines.components import discover
from pipelines.errors import RecipeError
from pipelines.parts.strategies import Strategy, TrainingProgress
from pipelines.training.assembly.parameter_groups import groups_by_depth, trainable_groups
from tests.pipelines.parts.strategies.harness import IDS, LABELS, MASK, TINY, classifier, optimizer_of

discover("pipelines.parts.strategies")
BODIES = sorted(set(TINY) - {"t5"})
REFUSED = {("adapter", "xlnet"), ("projected_attention", "xlnet"), ("projected_attention", "gpt2")}


@pytest.mark.parametrize("architecture", BODIES)
@pytest.mark.parametrize("name", sorted(Strategy.members))
def test_each_parameter_is_in_one_group_at_most_and_a_step_moves_no_other(name: str, architecture: str) -> None:
    strategy, network = Strategy.model_validate(name), classifier(architecture=architecture)
    if (name, architecture) in REFUSED:
        with pytest.raises(RecipeError, match=architecture):
            strategy.add_modules(network)
        return
    strategy.add_modules(network)
    before = {key: value.detach().clone() for key, value in network.named_parameters()}
    groups = trainable_groups(network, [strategy], 1e-2, 0.01)
    grouped = [key for group in groups for key, _ in group.parameters]
    assert grouped and len(grouped) == len(set(grouped)), "a parameter is in two groups"
    assert all(0 < group.lr <= 1e-2 and group.weight_decay in (0.0, 0.01) for group in groups)
    network.requires_grad_(False)
    for group in groups:
        for _, parameter in group.parameters:
            parameter.requires_grad_(strategy.trains(group, TrainingProgress(0, 10, 2)))
    remembered = strategy.begin(network)
    optimizer = optimizer_of([strategy], groups, 10)
    loss = torch.nn.functional.cross_entropy(network(IDS, MASK).logits, LABELS)
    sum(strategy.penalty(network, remembered).values(), loss).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    moved = {key for key, value in network.named_parameters() if not torch.equal(value, before[key])}
    assert moved and moved <= set(grouped)


@pytest.mark.parametrize("name", sorted(Strategy.members))
def test_something_trains_at_every_step_however_few_there_are(name: str) -> None:
    strategy = Strategy.model_validate(name)
    groups = strategy.groups(groups_by_depth(classifier(), 1e-3, 0.01))
    for total in (1, 2, 7):
        for step in range(total):
            assert any(strategy.trains(group, TrainingProgress(step, total, 3)) for group in groups)
