"""ERNIE of Tsinghua: an encoder whose upper layers fuse tokens with the entities that they mention (Zhang et al.
2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.backbones.graph_reading import GraphReading

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class ErnieThu(GraphReading, name="ernie_thu"):
    """BERT's layers over tokens, and aggregators over tokens and entities: each kind attends among itself, and a token
    and the entity of the name that begins with it are fused.

    Mentions are found in the tokens that the network reads; a name stands for its most probable entity. The entities of
    the graph have vectors by TransE, which do not train.
    """

    paper = "arXiv:1905.07129"

    num_hidden_layers: int = Field(6, gt=0)
    """Number of layers over tokens alone."""
    num_aggregators: int = Field(6, gt=0)
    """Number of layers over tokens and entities, above them."""
    entity_size: int = Field(100, gt=0)
    """Width of the vectors of entities, in elements."""

    def unfit_for_fewer_layers(self, layers: int) -> str | None:
        """Why none of the `layers` over tokens of a network can be removed, for the check of recipes; None if they
        can."""
        if layers != self.num_aggregators:
            return None
        return (
            f"{self.name} has {layers} layers over tokens and as many aggregators, which would go with them and still "
            "be counted; pre-train a network with another number of layers or aggregators"
        )

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.ernie_thu import ErnieThuConfig, register_auto_classes

        register_auto_classes()
        return ErnieThuConfig(**self.settings(tokenizer, length))

    def tiny(self) -> Self:
        smaller = {
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_aggregators": 1,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "entity_size": 16,
            "entity_heads": 2,
        }
        return self.model_copy(update=smaller)
