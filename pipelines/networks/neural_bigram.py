"""Neural bigram: one linear layer from a word to the scores of the next one (Xu & Rudnicky 2000, "Can artificial neural
networks learn language models?", §3).

    scores(· | w) = W[w] + b

A word is one input unit, so that the layer is a table with a row of scores for each word: V · V weights. Shapes: B
rows, L tokens, V the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture


class NeuralBigramConfig(PretrainedConfig):
    """Dimensions of a neural bigram."""

    model_type = "neural_bigram"

    vocab_size: int = 4000
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False

    @property
    def hidden_size(self) -> int:
        """Width of a state: the scores of the vocabulary."""
        return self.vocab_size


class NeuralBigramPreTrainedModel(AttentionFreeModel):
    """Base class of the table and the language model: configuration, names and weight initialisation."""

    config_class = NeuralBigramConfig
    base_model_prefix = "neural_bigram"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """All scores begin at zero: one layer has no symmetry to break."""
        if isinstance(module, nn.Embedding):
            init.zeros_(module.weight)
        elif isinstance(module, Offset):
            init.zeros_(module.bias)


class Offset(nn.Module):
    """Add the score that each word has after any other."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, scores: Tensor) -> Tensor:
        return scores + self.bias


class NeuralBigramModel(NeuralBigramPreTrainedModel):
    """The layer: a row of scores for each word."""

    def __init__(self, config: NeuralBigramConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """[B, L, V]: the rows of `input_ids` [B, L]. `attention_mask` is ignored."""
        return BaseModelOutput(last_hidden_state=self.embeddings(input_ids))


class NeuralBigramForCausalLM(NeuralBigramPreTrainedModel):
    """The language model: the rows, and an offset for each word."""

    def __init__(self, config: NeuralBigramConfig) -> None:
        super().__init__(config)
        self.neural_bigram = NeuralBigramModel(config)
        self.lm_head = Offset(config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> CausalLMOutput:
        """Scores [B, L, V] of the token after each of `input_ids` [B, L]."""
        return CausalLMOutput(logits=self.lm_head(self.neural_bigram(input_ids).last_hidden_state))


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    architecture = {AutoModel: NeuralBigramModel, AutoModelForCausalLM: NeuralBigramForCausalLM}
    register_architecture(NeuralBigramConfig, architecture)
