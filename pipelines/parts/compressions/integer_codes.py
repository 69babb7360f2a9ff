"""Weights of 8, 4, 3 or 2 bits in groups, which stay 8-bit integers in memory (Shen et al. 2020, Q-BERT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Discriminator, Tag, model_validator

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Change, Compression
from pipelines.parts.compressions.codes_of_groups import CodesOfGroups, MixedCodes
from pipelines.parts.compressions.group_quantization import _kind_of_bits
from pipelines.parts.compressions.rounded_training import RoundedTraining

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize

IN_MEMORY = 8 / 32
"""Share of the bytes of a matrix that no width exceeds."""


class IntegerCodes(CodesOfGroups, name="integer_codes"):
    """Store the matrices of the backbone with few bits, each group of consecutive output neurons with a range of its
    own (§3.2), and the embeddings with theirs; biases, normalisation and head stay in float32.

    The file holds packed codes, of 3 bits too; an opened network holds each code as one 8-bit integer, a quarter of
    the memory of float32, and converts those of a layer when it computes with it. Nothing trains or compresses the
    result further: it is refused. With `bits: trained` the weights get the codes with whose values a stage before
    trained them, so that answers stay as they are but for the rounding of inputs, which a runtime of 8-bit integers
    does. Raises RecipeError for a backbone without matrices, for embeddings that are also the output of the network,
    and where `trained` and what was trained do not agree.
    """

    paper = "arXiv:1909.05840"

    bits: Annotated[
        Annotated[Literal[8, 4, 3, 2, "trained"], Tag("all layers")] | Annotated[MixedCodes, Tag("mixed")],
        Discriminator(_kind_of_bits),
    ] = 4  # type: ignore[assignment]  # more than before
    """Number of bits of a weight, one for all layers or chosen by layer; `trained`: those of the stage that trained
    with rounded weights, with its groups and embeddings."""

    @model_validator(mode="after")
    def _nothing_else_than_trained(self) -> Self:
        changed = [key for key in ("groups", "embedding_bits") if getattr(self, key) != _default(key)]
        if self.bits == "trained" and changed:
            raise ValueError(f"bits: trained has the {changed[0]} of the training; leave {changed[0]} out")
        return self

    def size_after(self, size: StoredSize) -> StoredSize:
        if self.bits == "trained":  # by a stage that is not known here; it may have left the embeddings in float32
            return size.layers_times(IN_MEMORY)
        return super().size_after(size)

    def size_after_earlier(self, size: StoredSize, earlier: Sequence[Compression]) -> StoredSize:
        """About how many bytes, at most, a network has that had `size` and the compressions `earlier` before."""
        trained = next((one for one in reversed(earlier) if isinstance(one, RoundedTraining)), None)
        if self.bits != "trained" or trained is None:
            return self.size_after(size)
        return CodesOfGroups.size_after(trained, size)

    def unfit_after(self, earlier: Sequence[Compression], *, complete: bool) -> str | None:
        """Why `bits` does not fit weights that have `earlier` compressions, a sentence of the check of recipes; None if
        it does. Unless these are `complete`, a checkpoint from elsewhere may have had more."""
        trained = any(isinstance(one, RoundedTraining) for one in earlier)
        return self._disagreement(trained) if complete or trained else None

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        from pipelines.networks.rounded_layers import rounding_of

        modules = network.base_model.named_modules()
        trained = {name: rounding for name, module in modules if (rounding := rounding_of(module)) is not None}
        if unfit := self._disagreement(bool(trained)):
            raise RecipeError(f"compression {self.name}: {unfit}")
        if not trained:
            return super().choose(network, calibration)
        return {name: {"bits": one.bits, "groups": one.groups} for name, one in trained.items()}

    def _disagreement(self, trained: bool) -> str | None:
        """Why `bits` does not fit weights that were `trained` with rounding, or were not; None if it does."""
        if trained == (self.bits == "trained"):
            return None
        if trained:
            return "a stage before has trained the weights as they are with few bits; write bits: trained"
        return "bits: trained, and no stage before has trained with rounded weights; give a number of bits"

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.coded_weights import coded

        backbone = network.base_model
        for name, values in change.items():
            layer = coded(backbone.get_submodule(name), values["bits"], values["groups"])
            backbone.set_submodule(name, layer, strict=True)
        return network


def _default(key: str) -> object:
    return IntegerCodes.model_fields[key].default
