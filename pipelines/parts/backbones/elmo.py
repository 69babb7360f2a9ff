"""ELMo: words read letter by letter, under an LSTM of each direction (Peters et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Elmo(UnboundedBackbone, name="elmo"):
    """Convolutions over the letters of a word, then LSTMs with projections that read from the left and from the right.

    The directions share the words and nothing else. A tokenizer without spellings is read by the text of its tokens.
    """

    paper = "arXiv:1802.05365"

    projection_size: int = Field(512, gt=0)
    """Width of a word, and of the output of each direction, in elements; a layer's state is twice as wide."""
    lstm_size: int = Field(4096, gt=1)
    """Width of an LSTM's cell before its projection, in elements."""
    num_hidden_layers: int = Field(2, gt=0)
    """Number of layers, each an LSTM in either direction; the second and later ones add their input to their output."""
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
    """Share of the elements dropped of what an LSTM or the softmax reads."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.projection_size >= self.lstm_size:
            raise ValueError(f"projection_size {self.projection_size} projects nothing: lstm_size is {self.lstm_size}")
        if (widest := max(size for size, _ in self.filters)) > self.word_length:
            raise ValueError(f"filters: {widest} letters are wider than a word of {self.word_length}")
        return self

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.TWO_LANGUAGE_MODELS, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.elmo import ElmoConfig, register_auto_classes

        register_auto_classes()
        spellings = tokenizer.init_kwargs.get("spellings")
        if spellings is None:
            special = set(tokenizer.all_special_ids)
            tokens = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
            spellings = ["" if at in special else one.encode().decode("latin-1") for at, one in enumerate(tokens)]
        options = dict(self) | {"filters": [list(one) for one in self.filters]}
        return ElmoConfig(
            vocab_size=len(tokenizer),
            spellings=spellings,
            continuing=tokenizer.init_kwargs.get("continuing", []),
            hidden_size=2 * self.projection_size,
            pad_token_id=tokenizer.pad_token_id,
            unk_token_id=tokenizer.unk_token_id,
            **options,
        )

    def tiny(self) -> Self:
        smaller = {"projection_size": 16, "lstm_size": 32, "letter_size": 4, "filters": ((1, 8), (2, 8), (3, 16))}
        return self.model_copy(update=smaller)
