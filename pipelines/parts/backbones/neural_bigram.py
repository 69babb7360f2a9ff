"""Neural bigram: one linear layer over the word before (Xu & Rudnicky 2000)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class NeuralBigram(UnboundedBackbone, name="neural_bigram"):
    """A row of scores of the vocabulary for each word, so that a vocabulary of V words has V · V weights."""

    paper = "Xu & Rudnicky 2000"

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CAUSAL})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.neural_bigram import NeuralBigramConfig, register_auto_classes

        register_auto_classes()
        return NeuralBigramConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id)
