"""Feed-forward language model: the vectors of the last words, side by side, predict the next one (Bengio et al. 2003,
"A neural probabilistic language model", eq. 1).

    x = C(w₋₁) … C(w₋ₙ₊₁),   scores = b + W x + U tanh(d + H x)

A state is tanh(d + H x) and, with direct connections, x beside it: one linear layer on it is U and W together. Shapes:
B rows, L tokens, O the order, E the width of a word's vector, H that of a state, V the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture
from pipelines.networks.word_context import WordContextForCausalLM, preceding_words


class NnlmConfig(PretrainedConfig):
    """Dimensions of a feed-forward language model."""

    model_type = "nnlm"

    vocab_size: int = 10000
    order: int = 5
    """A word is predicted from one word fewer."""
    embedding_size: int = 60
    """Width of a word's vector."""
    inner_size: int = 100
    """Width of the tanh layer."""
    direct: bool = True
    """Whether the words' vectors are connected to the scores directly, too."""
    num_hidden_layers: int = 1
    """Number of states above the embeddings."""
    initializer_range: float = 0.1
    """Embeddings and output weights are initialised uniformly in ± this value."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False

    @property
    def context_size(self) -> int:
        """Width of the vectors of all words of a context."""
        return (self.order - 1) * self.embedding_size

    @property
    def hidden_size(self) -> int:
        """Width of a state."""
        return self.inner_size + (self.context_size if self.direct else 0)


class NnlmPreTrainedModel(AttentionFreeModel):
    """Base class of the backbone and the language model: configuration, names and weight initialisation."""

    config_class = NnlmConfig
    base_model_prefix = "nnlm"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -self.config.initializer_range, self.config.initializer_range)
        elif isinstance(module, nn.Linear):
            bound = module.in_features**-0.5
            init.uniform_(module.weight, -bound, bound)
            init.zeros_(module.bias)


class NnlmModel(NnlmPreTrainedModel):
    """From the last words to a state."""

    def __init__(self, config: NnlmConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size)
        self.start = nn.Parameter(torch.zeros(config.embedding_size))
        """[E]: the vector of every word before the row."""
        self.hidden = nn.Linear(config.context_size, config.inner_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """States [B, L, H] of `input_ids` [B, L]: of each token and the O − 2 before it.

        Padding on the right does not affect the tokens before it; `attention_mask` is ignored.
        """
        vectors = self.embeddings(input_ids)
        context = torch.cat(list(preceding_words(vectors, self.start, self.config.order)), -1)
        states = torch.tanh(self.hidden(context))
        if self.config.direct:
            states = torch.cat([states, context.to(states.dtype)], -1)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=(vectors, states) if output_hidden_states else None
        )


class NnlmForCausalLM(WordContextForCausalLM, NnlmPreTrainedModel):
    """The language model: a linear layer from the state to the scores of the vocabulary."""

    backbone_class = NnlmModel
    nnlm: NnlmModel


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(NnlmConfig, {AutoModel: NnlmModel, AutoModelForCausalLM: NnlmForCausalLM})
