"""TagLM's tagger, which takes language models above its first layer (Peters et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.backbones.bidirectional import BidirectionalBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Taglm(BidirectionalBackbone, name="taglm"):
    """BiLSTM layers above embeddings of its own; the second reads the features of the stage beside the first.

    Features are none of its input, unlike in `bilstm`: what a language model knows of a word meets what the tagger
    itself has found out about its context.
    """

    paper = "arXiv:1705.00108"

    hidden_size: int = Field(300, gt=1)
    num_hidden_layers: int = Field(2, ge=2)
    embedding_size: int = Field(100, gt=0)
    """Width of the trained vector of each token, random at first."""
    inner_dropout: float = Field(0.25, ge=0, lt=1)
    """Share of the elements dropped of the outputs of every layer but the top."""

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.taglm import TaglmConfig, register_auto_classes

        register_auto_classes()
        return TaglmConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"num_hidden_layers": 2})
