"""ELMo: words read letter by letter, under an LSTM of each direction (Peters et al. 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator

from pipelines.parts.backbones.spelled import SpelledBackbone

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Elmo(SpelledBackbone, name="elmo"):
    """Convolutions over the letters of a word, then LSTMs with projections that read from the left and from the right.

    The directions share the words and nothing else; the second and later layers add their input to their output. A
    tokenizer without spellings is read by the text of its tokens.
    """

    paper = "arXiv:1802.05365"

    lstm_size: int = Field(4096, gt=1)
    """Width of an LSTM's cell before its projection, in elements."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.projection_size >= self.lstm_size:
            raise ValueError(f"projection_size {self.projection_size} projects nothing: lstm_size is {self.lstm_size}")
        return self

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.elmo import ElmoConfig, register_auto_classes

        register_auto_classes()
        return ElmoConfig(**self.spelled_options(tokenizer))

    def tiny(self) -> Self:
        smaller = {"projection_size": 16, "lstm_size": 32, "letter_size": 4, "filters": ((1, 8), (2, 8), (3, 16))}
        return self.model_copy(update=smaller)
