"""Log-bilinear language model (Mnih & Hinton 2007)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import Field, field_validator

from pipelines.errors import DataError
from pipelines.networks.taxonomy import read_taxonomy, taxonomy_tree
from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.shipped import own_or_shipped
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerFast


class LogBilinear(UnboundedBackbone, name="log_bilinear"):
    """The vector of the next word as a linear function of the vectors of the last ones, without any other layer."""

    paper = "Mnih & Hinton 2007"

    order: int = Field(6, ge=2, le=64)
    """A word is predicted from one word fewer, like an n-gram's."""
    hidden_size: int = Field(100, gt=0)
    """Width of a word's vector, in elements."""
    diagonal: bool = True
    """Whether each distance weighs the elements of a vector, instead of multiplying it with a matrix."""
    taxonomy: Path | None = Field(None, exclude_if=lambda value: value is None)
    """File of IS-A relations, whose tree over the words a head may predict along: lines of term, tab, broader term."""

    @field_validator("taxonomy")
    @classmethod
    def _is_a_taxonomy(cls, value: Path | None) -> Path | None:
        if value is not None and own_or_shipped(value).is_file():  # a missing file is refused where the recipe is
            try:
                read_taxonomy(own_or_shipped(value))
            except DataError as error:
                raise ValueError(str(error)) from None
        return value

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return () if self.taxonomy is None else (own_or_shipped(self.taxonomy),)

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CAUSAL, Ability.ONE_STACK})

    def config(self, tokenizer: PreTrainedTokenizerFast, length: int) -> PretrainedConfig:
        from pipelines.networks.log_bilinear import LogBilinearConfig, register_auto_classes

        register_auto_classes()
        tree = None
        if self.taxonomy is not None:
            words = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
            counts = tokenizer.init_kwargs.get("counts") or [1] * len(words)
            given = taxonomy_tree(own_or_shipped(self.taxonomy), words, counts)
            tree = [given.parents.tolist(), given.sides.tolist()]
        return LogBilinearConfig(
            vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, order=self.order,
            hidden_size=self.hidden_size, diagonal=self.diagonal, taxonomy_tree=tree,
        )  # fmt: skip

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 16})
