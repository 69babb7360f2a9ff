"""Language models that predict a word from a fixed number of words before it, without recurrence or attention (Bengio
et al. 2003; Mnih & Hinton 2007).

Shapes: B rows of L tokens, O the order, E the width of a word's vector, V the vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from pipelines.networks.attention_free import AttentionFreeModel


def preceding_words(vectors: Tensor, start: Tensor, order: int) -> Iterator[Tensor]:
    """O − 1 tensors [B, L, E]: for each token of `vectors` [B, L, E] itself, then the vector of the word before it, and
    so on; the vector of every word before the row is `start` [E]."""
    before, length = order - 2, vectors.shape[1]
    padded = torch.cat([start.to(vectors.dtype).expand(len(vectors), before, -1), vectors], 1)
    for back in range(before + 1):
        yield padded[:, before - back : before - back + length]


class WordContextForCausalLM(AttentionFreeModel):
    """A language model: a backbone of states, and a linear layer from a state to the scores of the vocabulary."""

    backbone_class: ClassVar[type[PreTrainedModel]]

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        # under the name that the backbone's weights have in a saved folder
        self.add_module(self.base_model_prefix, self.backbone_class(config))
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> CausalLMOutput:
        """Scores [B, L, V] of the token after each of `input_ids` [B, L]. `attention_mask` is ignored."""
        return CausalLMOutput(logits=self.lm_head(self.base_model(input_ids).last_hidden_state))
