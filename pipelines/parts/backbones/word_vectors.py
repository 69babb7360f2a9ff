"""Static word vectors, without a context encoder (Mikolov et al. 2013)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class WordVectorsBackbone(UnboundedBackbone, name="word_vectors"):
    """An embedding table with one vector for each token.

    Its configuration keeps the word counts of a tokenizer that has them.
    """

    paper = "arXiv:1301.3781"

    hidden_size: int = Field(300, gt=0)
    """Width of a vector, in elements."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.STATIC, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.word_vectors import WordVectorsConfig, register_auto_classes

        register_auto_classes()
        return WordVectorsConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.hidden_size,
            token_counts=tokenizer.init_kwargs.get("counts"),
            pad_token_id=tokenizer.pad_token_id,
        )

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 16})
