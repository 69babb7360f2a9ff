"""A part reads of a batch what it declares, and is refused with a sentence otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from pipelines.components.declared import DeclaredBatch, whole
from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.shift_positions import ShiftPositions
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.vocabulary import Field, Signal

IDS = torch.ones(2, 4, dtype=torch.int64)
TOKENS = TokenIds(8, 1, (0,))
READS: dict[str, Callable[[Batch], Any]] = {
    "by name": lambda batch: batch[Field.LABELS],
    "where it is there": lambda batch: batch.get(Field.LABELS),
    "whether it is there": lambda batch: Field.LABELS in batch,
}


class Curious(Objective):
    """Reads the labels without declaring them; it has no name in the registry."""

    name = "curious"
    needs_fields = frozenset({Field.INPUT_IDS})
    needs_signals = frozenset({Signal.LOGITS})

    how: str = "by name"

    def rewrite(self, step: TrainingStep) -> Batch:
        return step.batch

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        READS[self.how](step.batch)
        return {}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        READS[self.how](batch)
        return {}


class CuriousHead(CausalLMHead):
    """Reads the labels without declaring them."""

    name = "curious"

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return {Signal.LOGITS: batch[Field.LABELS]}


class CuriousCorruption(Corruption):
    """Reads the labels without declaring them."""

    name = "curious"
    provides = frozenset({Field.PARTNER})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        return {**batch, Field.PARTNER: batch[Field.LABELS]}


def step_of(batch: dict[Field, Any]) -> TrainingStep:
    return TrainingStep(batch, {}, nn.Identity(), lambda *_: {})  # type: ignore[arg-type]


@pytest.mark.parametrize("how", READS)
def test_an_objective_that_reads_what_it_does_not_declare_is_refused(how: str) -> None:
    batch = {Field.INPUT_IDS: IDS, Field.LABELS: torch.zeros(2)}
    objective = Curious(how=how)
    message = (
        r"objective curious reads the field labels of a batch, which it does not declare: add it to `needs_fields`"
    )
    with pytest.raises(RecipeError, match=message) as caught:
        objective.loss(step_of(batch))
    assert "Curious (tests.pipelines.components.test_declared)" in str(caught.value)
    with pytest.raises(RecipeError, match=message):
        objective.counts(batch, nn.Identity())  # type: ignore[arg-type]


def test_a_head_and_a_corruption_are_refused_alike() -> None:
    with pytest.raises(RecipeError, match="head curious reads the field labels .* add it to `needs` or `may_read`"):
        CuriousHead().signals(
            nn.Identity(),  # type: ignore[arg-type]
            {Field.INPUT_IDS: IDS, Field.LABELS: IDS},
            frozenset({Signal.LOGITS}),
        )
    arrays = {Field.INPUT_IDS: IDS.numpy(), Field.LABELS: IDS.numpy()}
    with pytest.raises(RecipeError, match="corruption curious reads the field labels"):
        CuriousCorruption().apply(arrays, TOKENS, np.random.default_rng(0))


def test_what_is_declared_and_missing_is_named_with_what_the_batch_has() -> None:
    with pytest.raises(RecipeError, match="objective causal_lm needs the field input_ids, .* it has documents"):
        CausalLM().counts({Field.DOCUMENTS: IDS}, nn.Identity())  # type: ignore[arg-type]


def test_a_part_hands_on_fields_that_it_does_not_read() -> None:
    arrays = {Field.INPUT_IDS: IDS.numpy(), Field.LABELS: IDS.numpy()}
    made = ShiftPositions(positions=8).apply(arrays, TOKENS, np.random.default_rng(0))
    assert type(made) is dict and set(made) == {*arrays, Field.POSITION_IDS}
    view = DeclaredBatch(arrays, Curious(), frozenset({Field.INPUT_IDS}), "`needs_fields`")
    assert whole(view) == arrays and {**view} == arrays and dict(view.items()) == arrays


def test_a_batch_that_is_not_rewritten_stays_itself_and_companions_read_all_of_it() -> None:
    batch = {Field.INPUT_IDS: IDS, Field.ITEMS: torch.arange(2)}
    step = step_of(batch)
    assert Curious().rewrite(step) is batch and step.batch is batch
    read: list[Batch] = []

    class Learner(Curious):
        """Reads a companion's signals."""

        def loss(self, step: TrainingStep) -> dict[str, Tensor]:
            step.companion_signals("teacher", frozenset())
            return {}

    step.forward_companion = lambda name, batch, requested: read.append(batch) or {}  # type: ignore[func-returns-value]
    Learner().loss(step)
    assert set(read[0]) == set(batch) and Field.ITEMS in read[0]
