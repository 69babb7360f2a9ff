"""Paragraph vectors, inferred for any text with the vectors of words frozen (Le & Mikolov 2014)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class ParagraphVectorsBackbone(UnboundedBackbone, name="paragraph_vectors"):
    """Tables of words, from which the vector of a text is inferred by a few steps: its state at every token.

    Weights are given by `estimate: paragraph_vectors`. No gradient flows through the inference: a stage with labels
    trains what is above it, with `strategy: frozen`.
    """

    paper = "arXiv:1405.4053"

    architecture: Literal["dm", "dbow"] = "dm"
    """Whether a word is predicted from the mean of its neighbours and its paragraph (§2.2), or from the paragraph
    alone (§2.3)."""
    hidden_size: int = Field(100, gt=0)
    """Width of a vector, in elements."""
    window: int = Field(5, ge=1)
    """Neighbours on each side of a word, in `dm`."""
    inference_steps: int = Field(30, ge=1, le=10_000)
    """Steps down the gradient that infer the vector of a text."""
    inference_rate: float = Field(1.0, gt=0)
    """Length of the first one; each later one is divided by the root of the summed squares of all gradients
    before."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.PARAGRAPHS, Ability.ONE_STACK})

    @classmethod
    def recognise(cls, config: Mapping[str, Any]) -> Self | None:
        if config.get("model_type") != cls.name:
            return None
        stated = {**config, "architecture": config.get("paragraph_architecture", "dm")}
        return cls.model_validate({key: stated[key] for key in cls.model_fields if key in stated})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.paragraph_vectors import ParagraphVectorsConfig, register_auto_classes

        register_auto_classes()
        return ParagraphVectorsConfig(
            vocab_size=len(tokenizer),
            hidden_size=self.hidden_size,
            paragraph_architecture=self.architecture,
            window=self.window,
            inference_steps=self.inference_steps,
            inference_rate=self.inference_rate,
            special_ids=sorted(tokenizer.all_special_ids),
            pad_token_id=tokenizer.pad_token_id,
        )

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 16, "inference_steps": min(self.inference_steps, 3)})
