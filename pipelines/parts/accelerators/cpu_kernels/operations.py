"""Kernel implementations of the networks' replaceable operations; importing this module registers them.

Each returns NotImplemented where the kernels are not loaded or cannot read its arguments.
"""

from __future__ import annotations

from types import NotImplementedType

from torch import Tensor

from pipelines.networks.masked_softmax import masked_softmax
from pipelines.networks.vocabulary_loss import IGNORED, loss_and_gradient, mean_cross_entropy
from pipelines.parts.accelerators.cpu_kernels.attention import SoftmaxFunction, prepare_mask
from pipelines.parts.accelerators.cpu_kernels.cross_entropy import cross_entropy
from pipelines.parts.accelerators.cpu_kernels.dropout import draw_dropout
from pipelines.parts.accelerators.cpu_kernels.lazy_logits import LazyLogits
from pipelines.parts.accelerators.cpu_kernels.library import is_readable
from pipelines.parts.accelerators.cpu_kernels.linear_cross_entropy import linear_cross_entropy


def _softmax(scores: Tensor, mask: Tensor | None, scaling: float, rate: float) -> Tensor | NotImplementedType:
    if not is_readable(scores):
        return NotImplemented  # type: ignore[no-any-return]  # typeshed derives its type from Any
    if mask is not None:
        mask = prepare_mask(mask, scores.shape[-1])
    # torch does not type it
    result: Tensor = SoftmaxFunction.apply(scores, mask, scaling, draw_dropout(rate))  # type: ignore[no-untyped-call]
    return result


def _in_the_kernel(scores: Tensor, targets: Tensor, gradient: Tensor | None) -> Tensor | NotImplementedType:
    if not is_readable(scores):
        return NotImplemented  # type: ignore[no-any-return]  # typeshed derives its type from Any
    counted = _counted(targets, scores.shape[1])
    number = max(1, int(counted.sum()))
    losses, _ = cross_entropy(scores.contiguous(), targets.long().contiguous(), 1 / number, gradient=gradient)
    return losses.sum() / number


def _counted(targets: Tensor, width: int) -> Tensor:
    """Mask of the targets that count.

    Raises IndexError for a target outside the vocabulary: it would index foreign memory.
    """
    counted = targets != IGNORED
    if bool((counted & ((targets < 0) | (targets >= width))).any()):
        raise IndexError(f"targets from {int(targets.min())} to {int(targets.max())}, in a vocabulary of {width}")
    return counted


def _mean(scores: Tensor, targets: Tensor, inplace: bool) -> Tensor | NotImplementedType:
    """Compute logits that are still lazy, and that nothing else reads, for the counted targets alone."""
    if not isinstance(scores, LazyLogits) or not inplace or scores.computed:
        return NotImplemented  # type: ignore[no-any-return]  # typeshed derives its type from Any
    return _projected(scores, targets.flatten())


def _projected(scores: LazyLogits, targets: Tensor) -> Tensor:
    counted = _counted(targets, scores.layer.out_features)
    states = scores.states.flatten(0, -2)
    if not counted.any():
        return 0.0 * states.float().sum()
    if not counted.all():
        states, targets = states[counted], targets[counted]
    return linear_cross_entropy(states, scores.layer, targets.long().contiguous())


masked_softmax.replace(_softmax)
loss_and_gradient.replace(_in_the_kernel)
mean_cross_entropy.replace(_mean)
