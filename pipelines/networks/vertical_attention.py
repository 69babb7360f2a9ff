"""The network that reads a table row by row, and then attends down its columns (Yin et al. 2020, TaBERT)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead, dropout_of, linear
from pipelines.networks.cell_selector import EXCLUDED, OPERATORS, CellSelectionOutput, group_means


class VerticalAttention(BackboneWithHead):
    """A backbone over pairs of a question and one row of its table, layers that attend from a cell to those above and
    below it, and from the question of a row to that of the others, and scores.

    Args:
        config: of the backbone; `vertical_layers` is the number of layers on top.
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        size = config.hidden_size
        layers = (
            nn.TransformerEncoderLayer(
                size,
                config.num_attention_heads,
                getattr(config, "intermediate_size", 4 * size),
                dropout_of(config),
                activation="gelu",
                batch_first=True,
            )
            for _ in range(config.vertical_layers)
        )
        self.vertical = nn.ModuleList(layers)
        self.cells, self.columns = linear(size, 1, config), linear(size, 1, config)
        self.operators = linear(size, len(OPERATORS), config)

    def forward(
        self,
        input_ids: Tensor,
        table_rows: Tensor,
        token_columns: Tensor,
        cell_slots: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> CellSelectionOutput:
        """Logits of cells, of columns by the means of their cells, and of operators by the mean of the question.

        Args:
            input_ids: int64 [B · R, L], the rows of the tables one after the other, each with its question.
            table_rows: int64 [B, R], 1 for rows of a table, 0 for padding.
            token_columns: int64 [B · R, L], 0 for tokens of the question, from 1 for those of a column, −1 for others.
            cell_slots: int64 [B, K, 2], row among those that are read and column of each cell; −1, 0 for padding.
            others: further arguments of the backbone.
        """
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        slots, columns = cell_slots.unbind(-1)
        numbers = torch.arange(int(columns.max()) + 1, device=columns.device)
        means = group_means(token_columns.unsqueeze(1) == numbers.unsqueeze(-1), outputs.last_hidden_state)
        states = self._down(means.view(*table_rows.shape, *means.shape[1:]), table_rows == 0)
        rows = table_rows.to(states.dtype)
        of_tables = torch.einsum("br,brch->bch", rows / rows.sum(1, keepdim=True), states)
        of_cells = states.flatten(1, 2).take_along_dim(
            (slots.clamp(min=0) * len(numbers) + columns).unsqueeze(-1), dim=1
        )
        has_column = (columns.unsqueeze(1) == numbers[1:].unsqueeze(-1)).any(-1)
        return CellSelectionOutput(
            self.cells(of_cells).squeeze(-1).masked_fill(slots < 0, EXCLUDED),
            self.columns(of_tables[:, 1:]).squeeze(-1).masked_fill(~has_column, EXCLUDED),
            self.operators(of_tables[:, 0]),
            outputs.hidden_states,
        )

    def _down(self, states: Tensor, padding: Tensor) -> Tensor:
        """`states` [B, R, 1 + C, H] after the vertical layers, without rows that are `padding`, bool [B, R]."""
        batch, rows, width, size = states.shape
        columns = states.transpose(1, 2).reshape(batch * width, rows, size)
        ignored = padding.repeat_interleave(width, 0)
        for layer in self.vertical:
            columns = layer(columns, src_key_padding_mask=ignored)
        return columns.view(batch, width, rows, size).transpose(1, 2)
