"""Implementations of the networks' operations over the kernels; importing this module registers them.

Each returns NotImplemented where the kernels are not loaded, or cannot read its arguments.
"""

from __future__ import annotations

from torch import Tensor

from pipelines.networks.masked_softmax import masked_softmax
from pipelines.networks.vocabulary_loss import IGNORED, losses_and_gradient, mean_cross_entropy
from pipelines.parts.accelerators.cpu_kernels.attention import DrawnSoftmax, readable
from pipelines.parts.accelerators.cpu_kernels.cross_entropy import cross_entropy
from pipelines.parts.accelerators.cpu_kernels.dropout import drawn
from pipelines.parts.accelerators.cpu_kernels.library import computable
from pipelines.parts.accelerators.cpu_kernels.projected_loss import projected_cross_entropy
from pipelines.parts.accelerators.cpu_kernels.projection import Projection


def _softmax(scores: Tensor, mask: Tensor | None, scaling: float, rate: float) -> Tensor | NotImplementedType:
    if not computable(scores):
        return NotImplemented
    if mask is not None:
        mask = readable(mask, scores.shape[-1])
    result: Tensor = DrawnSoftmax.apply(scores, mask, scaling, drawn(rate))  # type: ignore[no-untyped-call]  # torch does not type it
    return result


def _in_the_kernel(scores: Tensor, targets: Tensor, gradient: Tensor | None) -> Tensor | NotImplementedType:
    if not computable(scores):
        return NotImplemented
    counted = _counted(targets, scores.shape[1])
    number = max(1, int(counted.sum()))
    losses, _ = cross_entropy(scores.contiguous(), targets.long().contiguous(), 1 / number, slopes=gradient)
    return losses.sum() / number


def _counted(targets: Tensor, width: int) -> Tensor:
    """Which targets count. Raises IndexError for one that is no word: it must not become a place in memory."""
    counted = targets != IGNORED
    if bool((counted & ((targets < 0) | (targets >= width))).any()):
        raise IndexError(f"targets from {int(targets.min())} to {int(targets.max())}, in a vocabulary of {width}")
    return counted


def _mean(scores: Tensor, targets: Tensor, spent: bool) -> Tensor | NotImplementedType:
    """Scores that are not computed yet, and that nobody else reads, are computed for the targets that count alone."""
    if not isinstance(scores, Projection) or not spent or scores.computed:
        return NotImplemented
    return _projected(scores, targets.flatten())


def _projected(scores: Projection, targets: Tensor) -> Tensor:
    counted = _counted(targets, scores.layer.out_features)
    states = scores.states.flatten(0, -2)
    if not counted.any():
        return 0.0 * states.float().sum()
    if not counted.all():
        states, targets = states[counted], targets[counted]
    return projected_cross_entropy(states, scores.layer, targets.long().contiguous())


masked_softmax.replace(_softmax)
losses_and_gradient.replace(_in_the_kernel)
mean_cross_entropy.replace(_mean)
