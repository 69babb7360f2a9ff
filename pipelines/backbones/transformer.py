"""Transformer bodies, as `transformers` implements them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from pipelines.backbones import Backbone
from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast

VOCABULARY_MULTIPLE = 64
"""Vocabulary rows are padded to a multiple of this: matrix products over the vocabulary run on whole tiles."""


class Transformer(Backbone, name="transformer"):
    """A Hugging Face architecture under its own name, with that architecture's own names for dimensions."""

    paper = "arXiv:1706.03762"

    architecture: Literal["bert"] = "bert"
    """`model_type` of the architecture in transformers."""
    dims: dict[str, int | float | str | bool] = Field({})
    """Keys of the architecture's configuration, for example hidden_size."""
    positions: int = Field(512, gt=0)
    """Longest sequence that the body can read, in tokens."""

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from transformers import AutoConfig

        if length > self.positions:
            raise RecipeError(
                f"backbone: sequences of {length} tokens do not fit {self.positions} positions; raise "
                "backbone.positions or lower budget.length"
            )
        known = AutoConfig.for_model(self.architecture).to_dict()
        for key in self.dims:
            if key not in known:
                raise RecipeError(f"backbone.dims: a {self.architecture} configuration has no key {key!r}")
        vocabulary = -(-len(tokenizer) // VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE
        return AutoConfig.for_model(
            self.architecture,
            vocab_size=vocabulary,
            max_position_embeddings=self.positions,
            pad_token_id=tokenizer.pad_token_id,
            **self.dims,
        )

    def tiny(self) -> Self:
        small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        return self.model_copy(update={"dims": {**self.dims, **small}})
