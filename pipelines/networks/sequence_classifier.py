"""The network of all heads that read one vector of a row: backbone, pooling, and scores of the pooled vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, dropout_of, linear

POOLED_WIDTH = {"concat": 3}
"""Pooling → number of vectors of width H that it concatenates; 1 unless listed here."""
POOLER = "pooler"
"""The pooling that the backbone itself does."""


@dataclass
class ClassificationOutput(ModelOutput):
    """Outputs of a sequence classifier."""

    logits: Tensor | None = None
    """[B, C]: scores."""
    pooled: Tensor | None = None
    """[B, H], or [B, 3H] with pooling `concat`: the vectors that the scores are computed from."""
    last_hidden_state: Tensor | None = None
    """[R, L, H]: R rows, two for each example if pairs are read in both orders."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [R, L, H], embeddings first."""


class SequenceClassifier(BackboneWithHead):
    """backbone → pooling → dropout → linear; with `classifier_hidden`, the two blocks of Howard & Ruder 2018, §3.3.

    Configuration keys: `id2label` (C), `classifier_pooling`, optionally `classifier_hidden` (width of the block) and
    `classifier_orders` (number of rows of one example, whose pooled vectors are added).
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config, pooler=config.classifier_pooling == POOLER)
        classes, width = len(config.id2label or {}), config.hidden_size * POOLED_WIDTH.get(config.classifier_pooling, 1)
        self.hidden: nn.Sequential | None = None
        hidden = getattr(config, "classifier_hidden", None)
        if hidden is not None:
            self.hidden = nn.Sequential(
                RowNorm(width),
                nn.Dropout(dropout_of(config)),
                linear(width, hidden, config),
                nn.ReLU(),
                RowNorm(hidden),
            )
            width = hidden
        self.dropout = nn.Dropout(dropout_of(config))
        self.classifier = linear(width, classes, config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> ClassificationOutput:
        """Scores of the rows `input_ids` [R, L]; `others` are further arguments of the backbone."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        if self.config.classifier_pooling == POOLER:
            pooled = outputs.pooler_output
        else:
            pooled = pool(outputs.last_hidden_state, attention_mask, self.config.classifier_pooling)
        orders = getattr(self.config, "classifier_orders", 1)
        if orders > 1:
            pooled = pooled.reshape(-1, orders, pooled.shape[-1]).sum(1)
        features = pooled if self.hidden is None else self.hidden(pooled)
        return ClassificationOutput(
            self.classifier(self.dropout(features)), pooled, outputs.last_hidden_state, outputs.hidden_states
        )


class RowNorm(nn.BatchNorm1d):
    """Batch normalisation; a batch of a single row, which has no variance, is normalised as in evaluation mode."""

    def forward(self, rows: Tensor) -> Tensor:
        if len(rows) > 1 or not self.training:
            return super().forward(rows)
        mean, variance = cast("Tensor", self.running_mean), cast("Tensor", self.running_var)
        return batch_norm(rows, mean, variance, self.weight, self.bias, training=False, eps=self.eps)


def pool(states: Tensor, mask: Tensor | None, pooling: str) -> Tensor:
    """[B, H] (`concat`: [B, 3H]): `states` [B, L, H] pooled over the tokens where `mask` [B, L] is 1; over all if it is
    None.

    `cls` is the first token, `last` the last, `mean` their mean, `concat` last, maximum and mean concatenated (Howard &
    Ruder 2018, §3.3).
    """
    if pooling == "cls":
        return states[:, 0]
    if mask is None:
        mask = torch.ones_like(states[:, :, 0], dtype=torch.long)
    if pooling == "last":
        return _last(states, mask)
    mean = _mean(states, mask)
    if pooling == "mean":
        return mean
    highest = states.masked_fill(mask.unsqueeze(-1) == 0, float("-inf")).amax(1)
    return torch.cat([_last(states, mask), highest, mean], dim=-1)


def _mean(states: Tensor, mask: Tensor) -> Tensor:
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(1) / weights.sum(1)


def _last(states: Tensor, mask: Tensor) -> Tensor:
    # also correct with padding on the left
    positions = (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(1)
    return states.take_along_dim(positions[:, None, None], 1).squeeze(1)
