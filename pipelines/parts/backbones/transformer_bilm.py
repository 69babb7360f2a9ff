"""ELMo's words under a Transformer of each direction (Peters et al. 2018, "Dissecting Contextual Word Embeddings")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from pipelines.parts.backbones.spelled import SpelledBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class TransformerBilm(SpelledBackbone, name="transformer_bilm"):
    """Convolutions over the letters of a word, then stacks of attention from the left and from the right.

    The directions share the words and nothing else. A tokenizer without spellings is read by the text of its tokens.
    """

    paper = "arXiv:1808.08949"

    num_hidden_layers: int = Field(6, gt=0)
    """Number of layers, each in either direction."""
    num_attention_heads: int = Field(8, gt=0)
    """Number of heads of a layer's attention, in each direction."""
    intermediate_size: int = Field(2048, gt=0)
    """Width between the two linear layers of a feed-forward sub-layer, in elements."""

    @model_validator(mode="after")
    def _has_whole_heads(self) -> Self:
        if self.projection_size % self.num_attention_heads:
            raise ValueError(
                f"projection_size {self.projection_size} is no multiple of num_attention_heads "
                f"{self.num_attention_heads}"
            )
        return self

    def unfit_for_fewer_layers(self, layers: int) -> str | None:
        """Why none of the `layers` of a network can be removed, for the check of recipes."""
        return (
            f"the top one of {self.name} alone ends in a normalisation, which no other can take over; pre-train a "
            "network of fewer layers"
        )

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.transformer_bilm import TransformerBilmConfig, register_auto_classes

        register_auto_classes()
        return TransformerBilmConfig(**self.spelled_options(tokenizer))

    def tiny(self) -> Self:
        smaller = {
            "projection_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 32,
            "letter_size": 4,
            "filters": ((1, 8), (2, 8), (3, 16)),
        }
        return self.model_copy(update=smaller)
