"""Quantization-aware training: weights train as they will be with few bits (Shen et al. 2020, Q-BERT, §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pipelines.parts.compressions import Change, Compression, Level
from pipelines.parts.compressions.codes_of_groups import CodesOfGroups

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize


class RoundedTraining(CodesOfGroups, name="rounded_training"):
    """Compute with the values that the weights of the backbone will have in few bits, group by group, and with inputs
    of matrix products in 8, while the float32 weights below train: the rounding counts as the identity backwards
    (straight-through estimator). With mixed bits, layers are chosen before the first step.

    Its folder is of float32, and a later stage goes on training in the same way: it is to be followed by a stage with
    `integer_codes` and `bits: trained`, whose weights are those values. No product of codes has inputs in 8 bits there:
    torch computes in float32. The inputs of a runtime of 8-bit integers are what `input_bits` simulates, with one
    range for each product, as ONNX Runtime measures it. Raises RecipeError for a backbone without matrices, and for
    embeddings that are also the output of the network.
    """

    paper = "arXiv:1909.05840"
    level: ClassVar[Level] = Level.WEIGHTS

    input_bits: Literal[8] | None = 8
    """Number of bits of what a matrix is multiplied with; null leaves that in float32."""

    def size_after(self, size: StoredSize) -> StoredSize:
        return size

    def unfit_before(self, later: Compression) -> str | None:
        """Why `later` does not fit weights that train with rounding, a sentence of the check of recipes; None if it
        does."""
        stores_codes = later.level is Level.BITS and isinstance(later, CodesOfGroups)
        if stores_codes or later.replaces_weights:
            return None
        if isinstance(later, RoundedTraining):
            return "the weights train with rounding already, and do so in all later stages; leave it out"
        if later.level is Level.WEIGHTS:
            return f"after {self.name} no matrix is left that it knows; apply {later.name} before {self.name}"
        return (
            f"after {self.name} no matrix is left that it knows; store the trained bits by integer_codes with bits: "
            f"trained, or start from the stage before {self.name}"
        )

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.rounded_layers import Rounding, round_in_training

        for name, values in change.items():
            rounding = Rounding(values["bits"], values["groups"], self.input_bits is not None)
            round_in_training(network.base_model.get_submodule(name), rounding)
        return network
