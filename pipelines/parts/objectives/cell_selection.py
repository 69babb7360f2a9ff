"""Answers to questions about tables as the only supervision (Herzig et al. 2020, TaPas §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

CELLS = Field.of_rows("cells")
CELL_NUMBERS = Field.of_rows("cell_numbers")
ANSWER_CELLS = Field.of_rows("answer_cells")
ANSWER_NUMBERS = Field.of_rows("answer_numbers")
CELL_LOGITS = Signal.of_head("cell_logits")
COLUMN_LOGITS = Signal.of_head("column_logits")
OPERATOR_LOGITS = Signal.of_head("operator_logits")


class CellSelection(Objective, name="cell_selection"):
    """The loss of an answer that is in cells, or of one that is computed of them; the operator is never given.

    In nats. An answer in cells: cross-entropy of its column, of the selection of that column's cells (their mean), and
    of the operator `none`. A number that is in no cell, or in one while the network prefers to compute: the Huber loss
    of the expected result over operators and cells, and the log-likelihood that there is an operator at all. Averaged
    over the examples whose answer is a number, or wholly in cells that are read; others are left out.
    """

    paper = "arXiv:2004.02349"
    needs_fields = frozenset({CELLS, CELL_NUMBERS, ANSWER_CELLS, ANSWER_NUMBERS})
    needs_signals = frozenset({CELL_LOGITS, COLUMN_LOGITS, OPERATOR_LOGITS})

    preference: float = Option(0.2, ge=0, le=1)
    """A number that is in a cell too is computed where the probability of an operator is above this."""
    delta: float = Option(0.12, gt=0)
    """Error of a number from which the Huber loss is linear."""
    cutoff: float | None = Option(None, gt=0)
    """Huber loss above which a number is left out, since no selection explains it; null: none is."""
    operator_weight: float = Option(1.0, ge=0)
    """Factor of the operator's terms (α)."""
    number_weight: float = Option(1.0, ge=0)
    """Factor of the Huber loss (β)."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import huber_loss

        batch, signals = step.batch, step.signals
        cells, columns, operators = (signals[name].float() for name in (CELL_LOGITS, COLUMN_LOGITS, OPERATOR_LOGITS))
        has_number, number = batch[ANSWER_NUMBERS].unbind(-1)
        in_cells = batch[ANSWER_CELLS].any(-1)
        log_operators = operators.log_softmax(-1)
        some_operator = log_operators[:, 1:].logsumexp(-1)
        computes = (has_number > 0) & ~(in_cells & (some_operator.detach().exp() <= self.preference))
        selection = _selection_loss(cells, columns, batch[CELLS], batch[ANSWER_CELLS])
        selection = selection - self.operator_weight * log_operators[:, 0]
        expected = _expected_number(cells, columns, operators, batch[CELLS], batch[CELL_NUMBERS])
        huber = huber_loss(expected, number, reduction="none", delta=self.delta)
        calculation = self.number_weight * huber - self.operator_weight * some_operator
        if self.cutoff is not None:
            calculation = torch.where(huber > self.cutoff, 0.0, calculation)
        losses = torch.where(computes, calculation, selection)[_is_read(batch)]
        return {self.name: losses.mean() if len(losses) else operators.sum() * 0}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {self.name: int(_is_read(batch).sum())}


def _is_read(batch: Batch) -> Tensor:
    """bool [B]: examples whose answer is in cells or a number."""
    answered: Tensor = batch[ANSWER_CELLS].any(-1) | (batch[ANSWER_NUMBERS][:, 0] > 0)
    return answered


def _selection_loss(cells: Tensor, columns: Tensor, coordinates: Tensor, answers: Tensor) -> Tensor:
    """[B]: cross-entropy of the column with the most answers, and the mean of that of its cells, headers left out."""
    from torch.nn.functional import binary_cross_entropy_with_logits, one_hot

    by_column = one_hot(coordinates[..., 1], columns.shape[-1] + 1)[..., 1:]
    target = (by_column * answers.unsqueeze(-1)).sum(1).argmax(-1)
    of_target = (coordinates[..., 0] > 0) & (coordinates[..., 1] == target.unsqueeze(-1) + 1)
    losses = binary_cross_entropy_with_logits(cells, answers.to(cells.dtype), reduction="none")
    mean = (losses * of_target).sum(-1) / of_target.sum(-1).clamp(min=1)
    return mean - columns.log_softmax(-1).gather(-1, target.unsqueeze(-1)).squeeze(-1)


def _expected_number(cells: Tensor, columns: Tensor, operators: Tensor, coordinates: Tensor, numbers: Tensor) -> Tensor:
    """[B]: sum, average and number of the cells of the most likely column, each cell by its probability, weighted by
    the probabilities of these operators."""
    import torch

    of_column = coordinates[..., 1] == columns.argmax(-1, keepdim=True) + 1
    selected = cells.sigmoid() * (of_column & (coordinates[..., 0] > 0))
    count, total = selected.sum(-1), (selected * numbers).sum(-1)
    results = torch.stack([total, total / count.clamp(min=1e-10), count], dim=-1)
    return (operators[:, 1:].softmax(-1) * results).sum(-1)
