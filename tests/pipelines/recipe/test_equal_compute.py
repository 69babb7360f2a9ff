"""Rivals that a recipe calls equal in compute are: operations of a token, forward and backward, times tokens."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedTokenizerFast

from pipelines.parts.corruptions import TokenIds
from pipelines.parts.objectives import TrainingStep
from pipelines.recipe.load import Library
from pipelines.recipe.schema import Stage
from pipelines.vocabulary import Field
from tests.companions import Beside
from tests.steps import RECIPES

ROWS = 8


def operations(stage: Stage, tokenizer: PreTrainedTokenizerFast) -> float:
    """Floating-point operations of matrix products that the stage spends, companions included."""
    assert stage.backbone and stage.head and stage.tokenizer and stage.budget.tokens
    config = stage.backbone.config(tokenizer, stage.budget.length)
    config.vocab_size = stage.tokenizer.vocab_size  # type: ignore[attr-defined]
    config._attn_implementation = "eager"
    network = stage.head.build(config, None)
    (objective,) = stage.objective
    companions = objective.companions(Beside(network))

    random = np.random.default_rng(0)
    arrays = {Field.INPUT_IDS: random.integers(5, config.vocab_size, (ROWS, stage.budget.length))}
    arrays[Field.ORIGINAL_IDS] = arrays[Field.INPUT_IDS]
    for corruption in stage.corruption:
        arrays = corruption.apply(arrays, TokenIds(config.vocab_size, 4, (0, 1, 2, 3, 4)), random)
    batch = {name: torch.from_numpy(value) for name, value in arrays.items()}
    step = TrainingStep(batch, {}, network, lambda name, batch, wanted: companions[name].forward(batch, wanted))
    with FlopCounterMode(display=False) as counter:
        step.batch = objective.rewrite(step)
        step.signals = stage.head.signals(network, step.batch, objective.needs_signals)
        torch.stack([*objective.loss(step).values()]).sum().backward()
    return counter.get_total_flops() / (ROWS * stage.budget.length) * stage.budget.tokens


@pytest.mark.parametrize("stage", ["general", "domain", "task"])
def test_electra_and_its_rival_compute_the_same(stage: str, tokenizer: PreTrainedTokenizerFast) -> None:
    stages = Library(RECIPES).load("electra").stages
    ours, rival = operations(stages[stage], tokenizer), operations(stages[f"bert_{stage}"], tokenizer)
    assert ours == pytest.approx(rival, rel=0.01)
