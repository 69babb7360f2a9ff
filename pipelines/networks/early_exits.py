"""A classifier after every layer, of which the first that is sure answers (Xin et al. 2020, DeeBERT; Zhou et al. 2020,
PABEE)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import linear
from pipelines.networks.sequence_classifier import POOLED_WIDTH, ClassificationOutput, SequenceClassifier, pool


class StoppableLayers(nn.ModuleList):
    """Layers whose iteration ends once `stop` is set: a backbone that runs through them computes no further one."""

    stop = False

    def __iter__(self) -> Iterator[nn.Module]:
        for layer in super().__iter__():
            if self.stop:
                return
            yield layer


class EarlyExitClassifier(SequenceClassifier):
    """A `SequenceClassifier` with a linear classifier of the pooled states of every layer but the last.

    Configuration keys: `exit_layers`, the path of the list of layers below the backbone, and `exit_confidence`. In
    evaluation mode and without gradients, a row's scores are those of the first layer whose largest probability is at
    least the confidence, else of the last; when all rows of a batch have theirs, no further layer is computed.
    Otherwise, and with the confidence 1, scores are those of the last layer.
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        owner, _, name = str(config.exit_layers).rpartition(".")
        self._layers = [StoppableLayers(self.base_model.get_submodule(config.exit_layers).children())]
        """In a list, since the backbone has it as a module."""
        setattr(self.base_model.get_submodule(owner), name, self._layers[0])
        width = config.hidden_size * POOLED_WIDTH.get(config.classifier_pooling, 1)
        self.exits = nn.ModuleList(
            linear(width, len(config.id2label or {}), config) for _ in range(len(self._layers[0]) - 1)
        )

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> ClassificationOutput:
        """Scores of the rows `input_ids` [R, L]; all layers are computed where their states are requested."""
        # a probability may be rounded to 1
        never = self.config.exit_confidence >= 1
        if never or self.training or output_hidden_states or torch.is_grad_enabled():
            return super().forward(input_ids, attention_mask, output_hidden_states, **others)
        answered = _FirstSure(self, attention_mask)
        hooks = [layer.register_forward_hook(answered.after) for layer in [*self._layers[0]][:-1]]
        try:
            outputs = super().forward(input_ids, attention_mask, False, **others)
        finally:
            self._layers[0].stop = False
            for hook in hooks:
                hook.remove()
        if answered.logits is not None:
            outputs.logits = torch.where(answered.sure.unsqueeze(-1), answered.logits, cast("Tensor", outputs.logits))
        return outputs

    def exit_logits(self, hidden_states: Sequence[Tensor], mask: Tensor | None, last: Tensor) -> Tensor:
        """[layers, B, C]: the scores after each layer, from `hidden_states` (layers + 1 of [B, L, H]) and those of the
        `last`."""
        logits = [
            classifier(self.dropout(pool(states, mask, self.config.classifier_pooling)))
            for classifier, states in zip(self.exits, hidden_states[1:-1], strict=True)
        ]
        return torch.stack([*logits, last])


class _FirstSure:
    """The scores of each row after the first layer that is sure of it."""

    def __init__(self, network: EarlyExitClassifier, mask: Tensor | None) -> None:
        self._network, self._mask, self._number = network, mask, 0
        self.logits: Tensor | None = None
        self.sure: Tensor = torch.zeros(0, dtype=torch.bool)

    def after(self, layer: nn.Module, inputs: Any, output: Any) -> None:
        """A hook after each layer but the last."""
        network = self._network
        states = output[0] if isinstance(output, tuple) else output
        logits = network.exits[self._number](pool(states, self._mask, network.config.classifier_pooling))
        self._number += 1
        sure = logits.float().softmax(-1).amax(-1) >= network.config.exit_confidence
        if self.logits is None:
            self.logits, self.sure = logits, sure
        else:
            self.logits = torch.where(self.sure.unsqueeze(-1), self.logits, logits)
            self.sure = self.sure | sure
        network._layers[0].stop = bool(self.sure.all())
