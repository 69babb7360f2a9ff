"""Log-bilinear language model: a linear function of the last words' vectors predicts the vector of the next one (Mnih &
Hinton 2007, "Three new graphical models for statistical language modelling", §5).

    state = Σ over i  C_i r(w₋ᵢ),   score(w) = state · r(w) + b(w)

The matrices C_i are diagonal, as in the hierarchical model (Mnih & Hinton 2008, §3), or full. Shapes: B rows, L tokens,
O the order, H the width of a word's vector, V the vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture
from pipelines.networks.word_context import WordContextForCausalLM, preceding_words


class LogBilinearConfig(PretrainedConfig):
    """Dimensions of a log-bilinear language model."""

    model_type = "log_bilinear"

    vocab_size: int = 10000
    order: int = 6
    """A word is predicted from one word fewer."""
    hidden_size: int = 100
    """Width of a word's vector, and of a state."""
    diagonal: bool = True
    """Whether a word's vector is weighted element by element, by the distance of the word; else by a whole matrix."""
    num_hidden_layers: int = 1
    """Number of states above the embeddings."""
    initializer_range: float = 0.1
    """Vectors are initialised normally with this standard deviation."""
    taxonomy_tree: list[list[int]] | None = None
    """Parent and side of each node of a tree over the words (`pipelines.networks.word_trees`); None: no taxonomy."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True


class LogBilinearPreTrainedModel(AttentionFreeModel):
    """Base class of the backbone and the language model: configuration, names and weight initialisation."""

    config_class = LogBilinearConfig
    base_model_prefix = "log_bilinear"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """A state begins as the mean of the words' vectors."""
        if isinstance(module, nn.Embedding):
            init.normal_(module.weight, std=self.config.initializer_range)
        elif isinstance(module, nn.Linear):
            init.normal_(module.weight, std=self.config.initializer_range)
            init.zeros_(module.bias)
        elif isinstance(module, LogBilinearModel):
            share = 1 / (self.config.order - 1)
            if self.config.diagonal:
                init.constant_(module.contexts, share)
            else:
                module.contexts.copy_(torch.eye(self.config.hidden_size).expand_as(module.contexts) * share)
            init.zeros_(module.start)


class LogBilinearModel(LogBilinearPreTrainedModel):
    """From the last words to a state: the predicted vector of the next word."""

    def __init__(self, config: LogBilinearConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.start = nn.Parameter(torch.empty(config.hidden_size))
        """[H]: the vector of every word before the row."""
        shape = [config.order - 1, config.hidden_size]
        self.contexts = nn.Parameter(torch.empty(*shape, *([] if config.diagonal else [config.hidden_size])))
        """[O − 1, H], or [O − 1, H, H]: C_i, that of the latest word first."""
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """States [B, L, H] of `input_ids` [B, L]: of each token and the O − 2 before it.

        Padding on the right does not affect the tokens before it; `attention_mask` is ignored.
        """
        vectors = self.embeddings(input_ids)
        states = torch.zeros_like(vectors)
        preceding = preceding_words(vectors, self.start, self.config.order)
        for words, weights in zip(preceding, self.contexts, strict=True):
            states = states + (words * weights if self.config.diagonal else words @ weights.T)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=(vectors, states) if output_hidden_states else None
        )


class LogBilinearForCausalLM(WordContextForCausalLM, LogBilinearPreTrainedModel):
    """The language model: every word scores by its own vector."""

    backbone_class = LogBilinearModel
    log_bilinear: LogBilinearModel
    _tied_weights_keys = {"lm_head.weight": "log_bilinear.embeddings.weight"}  # noqa: RUF012  # of transformers


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    architecture = {AutoModel: LogBilinearModel, AutoModelForCausalLM: LogBilinearForCausalLM}
    register_architecture(LogBilinearConfig, architecture)
