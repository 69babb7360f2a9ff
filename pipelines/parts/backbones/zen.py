"""ZEN: characters, and beside them the n-grams that they form (Diao et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, model_validator

from pipelines.parts.backbones import Backbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Zen(Backbone, name="zen"):
    """BERT's layers over tokens; layers over the n-grams of a row, which are added to the tokens that they cover.

    The lexicon is the tokenizer's, learnt from the corpus.
    """

    paper = "arXiv:1911.00720"
    needs_tokens: ClassVar[frozenset[str]] = frozenset({"ngrams"})

    hidden_size: int = Field(768, gt=0)
    """Width of every layer, in elements."""
    num_hidden_layers: int = Field(12, gt=0)
    """Number of layers over tokens."""
    num_ngram_layers: int = Field(6, gt=0)
    """Number of layers over n-grams, beside the lowest layers over tokens."""
    num_attention_heads: int = Field(12, gt=0)
    """Number of heads of a layer's attention."""
    intermediate_size: int = Field(3072, gt=0)
    """Width between the two linear layers of a feed-forward sub-layer, in elements."""
    positions: int = Field(512, gt=0)
    """Maximum sequence length in tokens."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"hidden_size {self.hidden_size} is no multiple of num_attention_heads {self.num_attention_heads}"
            )
        if self.num_ngram_layers > self.num_hidden_layers:
            raise ValueError(
                f"num_ngram_layers {self.num_ngram_layers} are more than the {self.num_hidden_layers} layers over "
                "tokens that they are beside"
            )
        return self

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.ONE_STACK})

    @property
    def max_length(self) -> int | None:
        return self.positions

    @property
    def token_types(self) -> int:
        return 2

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        if config.get("model_type") != cls.name:
            return None
        options = {key: config[key] for key in cls.model_fields if key in config}
        return cls.model_validate({**options, "positions": config["max_position_embeddings"]})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.errors import RecipeError
        from pipelines.networks.zen import ZenConfig, register_auto_classes

        if length > self.positions:
            raise RecipeError(
                f"backbone: sequences of {length} tokens do not fit {self.positions} positions; raise "
                "backbone.positions or lower budget.length"
            )
        register_auto_classes()
        options = {key: value for key, value in self if key != "positions"}
        return ZenConfig(
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            max_position_embeddings=self.positions,
            ngrams=tokenizer.init_kwargs.get("ngrams", []),
            **options,
        )

    def tiny(self) -> Self:
        smaller = {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_ngram_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 64,
        }
        return self.model_copy(update=smaller)
