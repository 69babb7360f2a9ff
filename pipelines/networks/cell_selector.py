"""The network that selects cells of a table, and what is computed of them (Herzig et al. 2020, TaPas §2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, linear

OPERATORS = ("none", "sum", "average", "count")
EXCLUDED = -10_000.0
"""Logit of what cannot be selected: finite, so that the gradient of its probability is 0 and not undefined."""


@dataclass
class CellSelectionOutput(ModelOutput):
    """Outputs of a cell selector."""

    cell_logits: Tensor | None = None
    """[B, K]: that each cell is selected, if its column is; EXCLUDED for headers and padding."""
    column_logits: Tensor | None = None
    """[B, C]: of each column, the first of a table first; EXCLUDED for columns that a table has not."""
    operator_logits: Tensor | None = None
    """[B, 4]: of the OPERATORS."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""


class CellScores(nn.Module):
    """Logits of cells and columns from the states of their tokens."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__()
        self.cells, self.columns = linear(config.hidden_size, 1, config), linear(config.hidden_size, 1, config)

    def forward(self, states: Tensor, token_cells: Tensor, cells: Tensor) -> tuple[Tensor, Tensor]:
        """The logit of a cell is the mean of its tokens', that of a column the mean of its cells', with the header.

        Args:
            states: [B, L, H].
            token_cells: int64 [B, L], the cell of each token, −1 for none.
            cells: int64 [B, K, 2], row from 0 for the header, and column from 1; −1, 0 for padding.
        """
        rows, columns = cells.unbind(-1)
        inside = token_cells.unsqueeze(1) == torch.arange(cells.shape[1], device=cells.device).unsqueeze(-1)
        means = group_means(inside, torch.cat([self.cells(states), self.columns(states)], dim=-1))
        cell_logits = means[..., 0].masked_fill(rows < 1, EXCLUDED)
        numbers = torch.arange(1, int(columns.max()) + 1, device=cells.device)
        of_column = columns.unsqueeze(1) == numbers.unsqueeze(-1)
        column_logits = group_means(of_column, means[..., 1:]).squeeze(-1)
        return cell_logits, column_logits.masked_fill(~of_column.any(-1), EXCLUDED)


class CellSelector(BackboneWithHead):
    """A backbone, scores of cells and columns, and of operators at the first token."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.scores = CellScores(config)
        self.operators = linear(config.hidden_size, len(OPERATORS), config)

    def forward(
        self,
        input_ids: Tensor,
        token_cells: Tensor,
        cells: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> CellSelectionOutput:
        """Logits for the rows `input_ids` [B, L], a question and its table each; `others` are further arguments of the
        backbone, `token_cells` and `cells` those of CellScores."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        states = outputs.last_hidden_state
        cell_logits, column_logits = self.scores(states, token_cells, cells)
        return CellSelectionOutput(cell_logits, column_logits, self.operators(states[:, 0]), outputs.hidden_states)


def group_means(members: Tensor, values: Tensor) -> Tensor:
    """[B, G, …]: means of `values` [B, N, …] over the members of each group, bool [B, G, N]; 0 for an empty one."""
    return (members.to(values.dtype) / members.sum(-1, keepdim=True).clamp(min=1)) @ values
