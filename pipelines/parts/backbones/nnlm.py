"""Feed-forward language model over the last words (Bengio, Ducharme, Vincent & Jauvin 2003)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class Nnlm(UnboundedBackbone, name="nnlm"):
    """The vectors of the last words side by side, a tanh layer, and direct connections beside it."""

    paper = "Bengio et al. 2003"

    order: int = Field(5, ge=2, le=64)
    """A word is predicted from one word fewer, like an n-gram's."""
    embedding_size: int = Field(60, gt=0)
    """Width of a word's vector, in elements."""
    inner_size: int = Field(100, gt=0)
    """Width of the tanh layer, in elements."""
    direct: bool = True
    """Whether the vectors are connected to the scores directly, too."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CAUSAL, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.nnlm import NnlmConfig, register_auto_classes

        register_auto_classes()
        return NnlmConfig(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **dict(self))

    def tiny(self) -> Self:
        return self.model_copy(update={"embedding_size": 16, "inner_size": 32})
