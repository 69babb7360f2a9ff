"""Base class of compressions whose weights are codes of 8, 4, 3 or 2 bits by groups (Shen et al. 2020, Q-BERT)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Change
from pipelines.parts.compressions.group_quantization import GroupQuantization, MixedBits, _kind_of_bits

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedModel


class MixedCodes(MixedBits):
    """Fewer bits for the layers that bear it, more for the others."""

    between: tuple[Literal[2, 3, 4], Literal[3, 4, 8]] = (2, 4)
    """The two numbers of bits; the mean lies between them (§4.2 mixes 2 and 3, and 2 and 4)."""

    @model_validator(mode="after")
    def _within(self) -> MixedCodes:
        low, high = self.between
        if not low < self.mean < high:
            raise ValueError(f"a mean of {self.mean:g} is not between {low} and {high}")
        return self

    @property
    def widths(self) -> tuple[int, int]:
        return self.between


class CodesOfGroups(GroupQuantization):
    """`group_quantization` with another width, 3 bits: its choice of layers and groups, for what its subclasses make of
    them."""

    bits: Annotated[
        Annotated[Literal[8, 4, 3, 2], Tag("all layers")] | Annotated[MixedCodes, Tag("mixed")],
        Discriminator(_kind_of_bits),
    ] = 4  # type: ignore[assignment]  # more widths than before
    """Number of bits of a weight, one for all layers or chosen by layer."""
    embedding_bits: Literal[8, 4, 3, 2] | None = Field(8)  # type: ignore[assignment]  # more widths than before
    """Number of bits of the embeddings; null leaves them in float32."""

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        try:
            return super().choose(network, calibration)
        except RecipeError as error:
            raise RecipeError(str(error).replace(GroupQuantization.name, self.name)) from None

    def _error(self, modules: Iterable[Module]) -> float:
        from pipelines.networks.group_quantization import dequantize, matrix, quantize

        assert isinstance(self.bits, MixedCodes)
        errors = []
        for module in modules:
            weight = matrix(module).detach()
            groups = min(self.groups, len(weight))
            rounded = dequantize(*quantize(weight, self.bits.widths[0], groups), groups)
            errors.append(float((weight - rounded).square().sum() / weight.square().sum().clamp_min(1e-30)))
        return float(np.mean(errors))
