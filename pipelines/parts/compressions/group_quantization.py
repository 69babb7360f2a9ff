"""Weights of 8, 4 or 2 bits in groups, uniform or mixed over the layers (Shen et al. 2020, Q-BERT)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Discriminator, Field, PositiveInt, Tag, field_validator

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Change, Compression, Level

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize

WIDTHS = (2, 4, 8)
"""Numbers of bits of a weight."""
FLOAT_BITS = 32


class MixedBits(BaseModel):
    """Fewer bits for the layers that bear it, more for the others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float = Field(gt=2, lt=8)
    """Mean number of bits over the weights of the layers, an upper bound."""
    choice: Literal["error", "hessian"] = "hessian"
    """Which layers get more bits: those of the largest error of quantization with fewer, relative to their weights, or
    those whose loss is most curved (§3.1)."""

    @field_validator("mean")
    @classmethod
    def _between(cls, value: float) -> float:
        if value in WIDTHS:
            raise ValueError(f"a mean of {value:g} is one width for all layers: write bits: {value:g}")
        return value

    @property
    def widths(self) -> tuple[int, int]:
        """The two numbers of bits next to the mean."""
        return max(one for one in WIDTHS if one < self.mean), min(one for one in WIDTHS if one > self.mean)


def _kind_of_bits(value: Any) -> str:
    return "mixed" if isinstance(value, (dict, MixedBits)) else "all layers"


class GroupQuantization(Compression, name="group_quantization"):
    """Store the matrices of the backbone with few bits, each group of consecutive output neurons with a range of its
    own (§3.2), and the embeddings with theirs; biases, normalisation and head stay in float32.

    The file holds packed codes; an opened network computes in float32 with the values of the codes. Nothing trains or
    compresses the result further: it is refused. With `choice: hessian` a layer's sensitivity is |mean| + standard
    deviation of the largest eigenvalue of the loss's Hessian over the calibration batches (§3.1). Raises RecipeError
    for a backbone without matrices, and for embeddings that are also the output of the network.
    """

    paper = "arXiv:1909.05840"
    level = Level.BITS

    bits: Annotated[
        Annotated[Literal[8, 4, 2], Tag("all layers")] | Annotated[MixedBits, Tag("mixed")],
        Discriminator(_kind_of_bits),
    ] = 4
    """Number of bits of a weight, one for all layers or chosen by layer."""
    groups: PositiveInt = 128
    """Groups of a matrix (§3.2, table 2: 1, 12, 128 or 768); at most its number of output neurons."""
    embedding_bits: Literal[8, 4, 2] | None = 8
    """Number of bits of the embeddings; null leaves them in float32."""

    @property
    def needs_gradients(self) -> bool:
        return isinstance(self.bits, MixedBits) and self.bits.choice == "hessian"

    def size_after(self, size: StoredSize) -> StoredSize:
        bits = self.bits if isinstance(self.bits, int) else self.bits.mean
        smaller = size.layers_times(bits / FLOAT_BITS)
        return smaller._replace(embeddings=size.embeddings * (self.embedding_bits or FLOAT_BITS) / FLOAT_BITS)

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        from torch import nn

        from pipelines.networks.group_quantization import matrix, quantizable

        backbone = network.base_model
        known = {name: module for name, module in backbone.named_modules() if quantizable(module)}
        matrices = {name: module for name, module in known.items() if not isinstance(module, nn.Embedding)}
        if not matrices:
            raise RecipeError(
                f"compression group_quantization: the backbone {network.config.model_type} has no matrices to quantize"
            )
        if isinstance(self.bits, int):
            change: dict[str, dict[str, Any]] = {name: {"bits": self.bits} for name in matrices}
        else:
            change = self._mixed(network, matrices, self.bits, calibration)
        if self.embedding_bits is not None:
            tables = [name for name in known if name not in matrices]
            _refuse_tied(network, tables)
            change |= {name: {"bits": self.embedding_bits} for name in tables}
        return {
            name: {**values, "groups": min(self.groups, len(matrix(known[name])))} for name, values in change.items()
        }

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.group_quantization import quantized

        backbone = network.base_model
        for name, values in change.items():
            packed = quantized(backbone.get_submodule(name), values["bits"], values["groups"])
            backbone.set_submodule(name, packed, strict=True)
        return network

    def _mixed(
        self,
        network: PreTrainedModel,
        matrices: Mapping[str, Module],
        mixed: MixedBits,
        calibration: Calibration | None,
    ) -> dict[str, dict[str, Any]]:
        """Bits and sensitivity of each matrix. Matrices of one layer get the same number; those outside layers, the
        higher one."""
        from pipelines.networks.group_quantization import matrix

        low, high = mixed.widths
        layers = _by_layer(network, matrices)
        inside = {name for names in layers.values() for name in names}
        if mixed.choice == "error":
            sensitivity = {layer: self._error(matrices[name] for name in names) for layer, names in layers.items()}
        else:
            assert calibration is not None
            sensitivity = _curvature(
                network, {layer: [matrices[name] for name in names] for layer, names in layers.items()}, calibration
            )
        sizes = {layer: sum(matrix(matrices[name]).numel() for name in names) for layer, names in layers.items()}
        bits = allocate(sensitivity, sizes, mixed.mean, low, high)
        change: dict[str, dict[str, Any]] = {name: {"bits": high} for name in matrices if name not in inside}
        for layer, names in layers.items():
            change |= {name: {"bits": bits[layer], "sensitivity": float(f"{sensitivity[layer]:.6g}")} for name in names}
        return {name: change[name] for name in matrices}

    def _error(self, modules: Iterable[Module]) -> float:
        """Mean over matrices of ‖W − Q(W)‖² / ‖W‖² with the fewer bits."""
        assert isinstance(self.bits, MixedBits)
        from pipelines.networks.group_quantization import matrix, quantized

        errors = []
        for module in modules:
            weight = matrix(module).detach()
            packed = quantized(module, self.bits.widths[0], min(self.groups, len(weight))).weight
            errors.append(float((weight - packed).square().sum() / weight.square().sum().clamp_min(1e-30)))
        return float(np.mean(errors))


def allocate(
    sensitivity: Mapping[str, float], sizes: Mapping[str, int], mean: float, low: int, high: int
) -> dict[str, int]:
    """Layer → bits: `high` for the most sensitive layers, as far as the mean over all weights stays at most `mean`."""
    bits = dict.fromkeys(sizes, low)
    left = (mean - low) * sum(sizes.values())
    for layer in sorted(sizes, key=lambda one: -sensitivity[one]):
        if (high - low) * sizes[layer] <= left:
            bits[layer] = high
            left -= (high - low) * sizes[layer]
    return bits


def _by_layer(network: PreTrainedModel, matrices: Iterable[str]) -> dict[str, list[str]]:
    """Path of each layer → its matrices. Layers are the members of the outermost lists of modules."""
    from torch import nn

    lists = [name for name, module in network.base_model.named_modules() if isinstance(module, nn.ModuleList)]
    outermost = [name for name in lists if not any(name.startswith(f"{other}.") for other in lists)]
    layers: dict[str, list[str]] = {}
    for name in matrices:
        for stack in outermost:
            if name.startswith(f"{stack}."):
                number = name.removeprefix(f"{stack}.").partition(".")[0]
                layers.setdefault(f"{stack}.{number}", []).append(name)
    if not layers:
        raise RecipeError(
            f"compression group_quantization: the backbone {network.config.model_type} has no list of layers to mix "
            "bits over; give one number of bits"
        )
    return layers


def _curvature(
    network: PreTrainedModel, layers: Mapping[str, list[Module]], calibration: Calibration
) -> dict[str, float]:
    """Layer → |mean| + standard deviation over batches of the Hessian's largest eigenvalue (§3.1, eq. 2)."""
    import torch

    from pipelines.networks.curvature import top_eigenvalue

    weights = {layer: [module.get_parameter("weight") for module in modules] for layer, modules in layers.items()}
    every = [weight for several in weights.values() for weight in several]
    values: dict[str, list[float]] = {layer: [] for layer in layers}
    generator = torch.Generator().manual_seed(calibration.seed)
    for batch in calibration.batches():
        gradients = torch.autograd.grad(calibration.loss(network, batch), every, create_graph=True)
        begin = 0
        for layer, several in weights.items():
            part = gradients[begin : begin + len(several)]
            begin += len(several)
            values[layer].append(top_eigenvalue(part, several, generator))
    return {layer: float(abs(np.mean(one)) + np.std(one)) for layer, one in values.items()}


def _refuse_tied(network: PreTrainedModel, tables: Iterable[str]) -> None:
    """RecipeError if one of the embeddings `tables`, paths below the backbone, is shared with another module."""
    from collections import Counter

    shared = Counter(id(parameter) for _, parameter in network.named_parameters(remove_duplicate=False))
    for name in tables:
        if shared[id(network.base_model.get_submodule(name).weight)] > 1:
            raise RecipeError(
                f"compression group_quantization: the embeddings {name} are also the output of this network; set "
                "embedding_bits: null"
            )
