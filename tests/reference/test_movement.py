"""Movement pruning: scores in float64 by the paper's equation, weights that return, and a stage that is resumed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import open_model
from pipelines.networks.movement import MovementMask
from pipelines.parts.compressions.movement_pruning import MovementPruning
from pipelines.recipe.job import Job
from pipelines.training.ranks.run import run
from tests.pipelines.training.computed_stages import computed, matrices
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.pipelines.training.test_resume_of_shapes import interrupted

STEPS, SHARE = 12, 0.7
RECIPE = recipe_of(
    "moving",
    "arXiv:2005.07683",
    masked_lm_stage(tokens=2048, positions=32, batch_tokens=512),
    """\
  moved:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    compression: {name: movement_pruning, share: 0.7, gradually: 0.75, updates: 6}
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 4, batch_texts: 4, length: 32}
  tuned: {like: moved, start: moved, compression: [], budget: {epochs: 1}}
""",
)


def regression() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    weight, inputs = torch.randn(6, 5, generator=generator), torch.randn(STEPS, 8, 5, generator=generator)
    return weight.double(), inputs.double(), (inputs @ torch.randn(5, 6, generator=generator)).double()


def by_hand(share_after: list[float], rate: float) -> tuple[NDArray[np.float64], set[int]]:
    """The pruned matrix after `STEPS` steps of gradient descent, and the weights that were zero and returned."""
    weight, inputs, targets = (one.numpy() for one in regression())
    scores, mask, returned = np.zeros_like(weight), np.ones_like(weight), set[int]()
    for step, share in enumerate(share_after):
        effective = weight * mask
        residual = inputs[step] @ effective.T - targets[step]
        gradient = 2 * residual.T @ inputs[step] / residual.size
        scores -= gradient * weight
        weight = weight - rate * gradient * mask  # the gradient of a masked weight is zero
        after = np.ones_like(mask)
        after.ravel()[np.argsort(scores.ravel(), kind="stable")[: round(share * mask.size)]] = 0
        returned |= set(np.flatnonzero((after == 1) & (mask == 0)).tolist())
        mask = after
    return weight * mask, returned


def test_a_matrix_is_pruned_by_the_paper_s_equation() -> None:
    start, inputs, targets = regression()
    rate = 0.4
    shares = [SHARE * (step + 1) / STEPS for step in range(STEPS - 1)] + [SHARE]
    expected, returned = by_hand(shares, rate)
    assert returned, "a weight that was zero returned"
    layer = nn.Linear(5, 6, bias=False).double()
    layer.weight.data.copy_(start)
    mask = MovementMask([layer.weight], SHARE, lambda progress: shares[round(progress * STEPS) - 1])
    optimizer = torch.optim.SGD(layer.parameters(), lr=rate)
    for step in range(STEPS):
        optimizer.zero_grad()
        (layer(inputs[step]) - targets[step]).square().mean().backward()
        optimizer.step()
        mask((step + 1) / STEPS)
    np.testing.assert_allclose(layer.weight.detach().numpy(), expected, rtol=1e-5)
    zeros = layer.weight == 0
    assert int(zeros.sum()) == round(SHARE * 30)
    # from now on what is zero stays
    layer.weight.data.add_(1)
    mask(1.0)
    assert torch.equal(layer.weight == 0, zeros) and mask.state() == {}


def test_other_weights_go_than_the_smallest() -> None:
    layer = nn.Linear(2, 1, bias=False)
    layer.weight.data.copy_(torch.tensor([[2.0, 0.1]]))
    mask = MovementMask([layer.weight], 0.5, lambda progress: 0.5)
    layer.weight.grad = torch.tensor([[1.0, -1.0]])  # the large one moves towards zero, the small one away
    mask(1.0)
    assert (layer.weight == 0).tolist() == [[True, False]]


def test_zeros_are_made_in_the_course_of_training() -> None:
    part = MovementPruning(share=0.6)
    assert part.complete_after == 0.5
    with pytest.raises(ValueError, match="gradually"):
        MovementPruning(gradually=0)


@pytest.fixture(scope="module")
def jobs(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """Stage → the job that computed it, without interruption."""
    return computed(tmp_path_factory.mktemp("moving"), "moving", RECIPE, tables, sources)


def test_a_stage_leaves_zeros_that_later_stages_keep(jobs: dict[str, Job]) -> None:
    moved, tuned = (matrices(jobs[name].out) for name in ("moved", "tuned"))
    assert moved
    start = matrices(jobs["general"].out)
    smallest = 0
    for name, value in moved.items():
        zeros = value == 0
        assert int(zeros.sum()) == round(0.7 * value.numel()), name
        assert torch.equal(tuned[name] == 0, zeros) and not torch.equal(tuned[name], value)
        order = start[name].abs().flatten().argsort()[: int(zeros.sum())]
        smallest += int(zeros.flatten()[order].sum() == zeros.sum())
    assert smallest == 0, "magnitude decided"
    assert open_model(jobs["moved"].out, "cpu").record.changes[0].compression.name == "movement_pruning"


@pytest.mark.parametrize("steps", [6, 14])
def test_an_interrupted_stage_ends_as_if_never_interrupted(steps: int, jobs: dict[str, Job], tmp_path: Path) -> None:
    job = jobs["moved"].model_copy(update={"out": tmp_path / "moved"})
    interrupted(job, steps)
    assert run(job).resumed_from_step == steps // 4 * 4
    first, second = ((one.out / "model.safetensors").read_bytes() for one in (job, jobs["moved"]))
    assert first == second
