"""KnowBert: an encoder that reads a graph where its text mentions entities of it (Peters et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from pipelines.parts.backbones.graph_reading import GraphReading

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class KnowBert(GraphReading, name="knowbert"):
    """BERT's layers; between two of them, the words attend to the mentions of entities, each with the vector of what a
    linker chooses among its candidates.

    Mentions are found in the tokens that the network reads. The entities of the graph have vectors by TransE, which do
    not train; the linker learns with what the network predicts.
    """

    paper = "arXiv:1909.04164"

    num_hidden_layers: int = Field(12, ge=2)
    """Number of layers."""
    after: int = Field(10, ge=1)
    """Number of layers below the knowledge attention; at least one is above it."""
    entity_intermediate_size: int = Field(1024, gt=0)
    """Width inside the feed-forward sub-layers above the attention among mentions, and of words to mentions."""
    linker_size: int = Field(100, gt=0)
    """Width of the hidden layer of the linker."""
    threshold: float | None = Field(None, ge=-1000, le=1000, exclude_if=lambda value: value is None)
    """Score below which a candidate does not count; None: all count."""

    @model_validator(mode="after")
    def _is_between(self) -> Self:
        if self.after >= self.num_hidden_layers:
            raise ValueError(
                f"after: the knowledge attention is between two of the {self.num_hidden_layers} layers; give at most "
                f"{self.num_hidden_layers - 1}, got {self.after}"
            )
        return self

    def unfit_for_fewer_layers(self, layers: int) -> str | None:
        """Why none of the `layers` of a network can be removed, for the check of recipes."""
        return (
            f"the knowledge attention of {self.name} is after layer {self.after}: of fewer layers that is another one, "
            "or none; pre-train a network of fewer layers"
        )

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.knowbert import KnowBertConfig, register_auto_classes

        register_auto_classes()
        return KnowBertConfig(**self.settings(tokenizer, length))

    def tiny(self) -> Self:
        smaller = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "after": 1,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "entity_size": 16,
            "entity_heads": 2,
            "entity_intermediate_size": 32,
            "linker_size": 8,
        }
        return self.model_copy(update=smaller)
