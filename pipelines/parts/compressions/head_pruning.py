"""Pruning of attention heads by the loss's sensitivity to them (Michel, Levy & Neubig 2019)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions import Calibration, Change, Compression, Level

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.attention_heads import AttentionHeads
    from pipelines.networks.stored_size import StoredSize


class HeadPruning(Compression, name="head_pruning"):
    """Remove the attention heads whose gates change the loss least: their rows of query, key and value and their
    columns of the output projection, so that bytes and operations fall.

    The importance of head h is E|∂L/∂ξ_h| over the calibration batches, where ξ_h multiplies its output (eq. 2), and
    the expectation is over examples; it is divided by its l2 norm within the layer (§4.1, as Molchanov et al. 2017).
    Heads are removed in rounds, each with the importance in the network that is left (§4.2). Every layer keeps a head:
    attention is the only path between positions. Raises RecipeError for an architecture whose heads are
    not removable.
    """

    paper = "arXiv:1905.10650"
    level = Level.HEADS

    share: float = Field(0.5, gt=0, le=1)
    """Share of the heads to keep, over all layers."""
    rounds: PositiveInt = 5
    """Number of times that the importance is computed."""
    order: Literal["importance", "random"] = "importance"
    """Which heads go first; `random` is drawn by the stage's seed, as a baseline."""

    @property
    def needs_gradients(self) -> bool:
        return self.order == "importance"

    @property
    def draws(self) -> bool:
        return True

    def size_after(self, size: StoredSize) -> StoredSize:
        return size._replace(attention=size.attention * self.share)

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        import torch

        assert calibration is not None
        heads = attention_heads(network)
        masks = [torch.ones(one.count) for one in heads]
        total = sum(one.count for one in heads)
        to_remove = total - max(len(heads), round(total * self.share))
        for number in range(1, self.rounds + 1):
            if self.order == "importance":
                scores = head_importance(network, heads, masks, calibration)
            else:
                random = np.random.default_rng([calibration.seed, 6])
                scores = [random.random(one.count) for one in heads]
            _remove_least(masks, scores, total - round(to_remove * number / self.rounds))
        removed = {
            one.path: [head for head, mask in enumerate(values.tolist()) if not mask]
            for one, values in zip(heads, masks, strict=True)
        }
        return {path: gone for path, gone in removed.items() if gone}

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.attention_heads import remove_heads

        remove_heads(attention_heads(network), change)
        return network


def attention_heads(network: PreTrainedModel) -> list[AttentionHeads]:
    """The heads of every layer of a network. RecipeError for an architecture that has other values for each head."""
    from pipelines.networks.attention_heads import AttentionHeads

    config, backbone = network.config, network.base_model
    architecture = Architecture.of(config)
    stacks = architecture.stacks if architecture is not None else {}
    if not stacks or any(names.heads is None for names in stacks.values()):
        known = [one.name for one in Architecture.all() if all(names.heads for names in one.stacks.values())]
        raise RecipeError(
            f"compression head_pruning: heads cannot be removed from the backbone {config.model_type}; supported: "
            f"{', '.join(known)}"
        )
    size = config.hidden_size // config.num_attention_heads
    return [
        AttentionHeads(f"{path}.{index}", layer, *names.heads, size)
        for path, names in stacks.items()
        if names.heads is not None
        for index, layer in enumerate(backbone.get_submodule(path).children())
    ]


def head_importance(
    network: PreTrainedModel, heads: Sequence[AttentionHeads], masks: Sequence[Tensor], calibration: Calibration
) -> list[NDArray[np.float64]]:
    """For each layer the importance [heads] of its heads, of l2 norm 1, in the network whose gates are `masks`."""
    import torch

    from pipelines.networks.attention_heads import gated

    totals = [np.zeros(len(mask)) for mask in masks]
    for batch in calibration.batches():
        with gated(heads, masks) as gates:
            gradients = torch.autograd.grad(calibration.loss(network, batch), gates)
        for total, gradient in zip(totals, gradients, strict=True):
            # the loss is a mean over rows: of each row by itself, it is that many times as large
            total += len(gradient) * gradient.abs().double().sum(0).cpu().numpy()
    return [total / max(float(np.linalg.norm(total)), np.finfo(np.float64).tiny) for total in totals]


def _remove_least(masks: Sequence[Tensor], scores: Sequence[NDArray[np.float64]], keep: int) -> None:
    """Set the masks of the heads of the lowest scores to 0 until `keep` heads are left, at least one of each layer."""
    ranked = sorted((float(score), layer, head) for layer, one in enumerate(scores) for head, score in enumerate(one))
    left = sum(int(mask.sum()) for mask in masks)
    for _, layer, head in ranked:
        if left <= keep:
            return
        if masks[layer][head] and masks[layer].sum() > 1:
            masks[layer][head] = 0
            left -= 1
