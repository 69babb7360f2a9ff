"""Base class of backbones that read words letter by letter, with a language model of each direction above them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


class SpelledBackbone(UnboundedBackbone):
    """Convolutions over the letters of a word, highway layers, a projection, and layers of two directions.

    The directions share the words and nothing else. A tokenizer without spellings is read by the text of its tokens.
    """

    projection_size: int = Field(512, gt=0)
    """Width of a word, and of the output of each direction, in elements; a layer's state is twice as wide."""
    num_hidden_layers: int = Field(2, gt=0)
    """Number of layers, each in either direction."""
    letter_size: int = Field(16, gt=0)
    """Width of a letter's embedding, in elements."""
    filters: tuple[tuple[int, int], ...] = Field(
        ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024)), min_length=1
    )
    """Convolutions over the letters: width in letters, and number of filters, of each."""
    highway_layers: int = Field(2, ge=0)
    """Number of highway layers above the convolutions."""
    word_length: int = Field(50, gt=2)
    """Letters of a word that are read, UTF-8 bytes between a begin and an end; the rest of a longer word is not."""
    layer_dropout: float = Field(0.1, ge=0, lt=1)
    """Share of the elements dropped of what a layer or the softmax reads."""

    @model_validator(mode="after")
    def _has_room_for_filters(self) -> Self:
        if (widest := max(size for size, _ in self.filters)) > self.word_length:
            raise ValueError(f"filters: {widest} letters are wider than a word of {self.word_length}")
        return self

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.TWO_LANGUAGE_MODELS, Ability.ONE_STACK})

    def spelled_options(self, tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
        """What the configuration of a network that reads letters is made of: the options, and every spelling."""
        spellings = tokenizer.init_kwargs.get("spellings")
        if spellings is None:
            special = set(tokenizer.all_special_ids)
            tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
            spellings = ["" if at in special else one.encode().decode("latin-1") for at, one in enumerate(tokens)]
        return {
            **dict(self),
            "filters": [list(one) for one in self.filters],
            "vocab_size": len(tokenizer),
            "spellings": spellings,
            "continuing": tokenizer.init_kwargs.get("continuing", []),
            "hidden_size": 2 * self.projection_size,
            "pad_token_id": tokenizer.pad_token_id,
            "unk_token_id": tokenizer.unk_token_id,
        }
