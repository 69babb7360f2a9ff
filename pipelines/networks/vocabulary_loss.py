"""Cross-entropy over a whole vocabulary, in the memory of its gradient.

torch keeps the log-probabilities of all positions in float32 between the loss and its gradient. Here the gradient is made
while the loss is, a few rows at a time, in the scores' own type: on 32 rows of 128
tokens over 8192 words the loss then takes two thirds of the memory in float32 and half of it under bf16 autocast.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from pipelines.networks.operation import Operation

IGNORED = -100
"""Target of a position that does not count."""
CHUNK = 512
"""Positions that are in float32 at a time."""


class VocabularyCrossEntropy(torch.autograd.Function):
    """`apply(scores [N, V], targets int64 [N], inplace)`: mean over the targets that are not IGNORED; 0 where there is none.

    The result is float32, or float64 where the scores are. It can be differentiated once. Where the scores are `inplace` their
    gradient may take their place in memory.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor, inplace: bool) -> Tensor:
        room = None
        if ctx.needs_input_grad[0]:
            here = inplace and scores.is_contiguous()
            room = scores.detach() if here else torch.empty_like(scores, memory_format=torch.contiguous_format)
            if here:
                increment_version(
                    scores
                )  # whoever has saved them for a gradient is told, instead of reading something else
        loss, gradient = loss_and_gradient(scores, targets, room), room
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, None, None]:
        (gradient,) = ctx.saved_tensors
        # a pass over all of it is worth a look at one number, but not where that waits for a device
        if not gradient.is_cuda and float(outer[0]) == 1:
            return gradient, None, None
        return gradient * outer[0].to(gradient.dtype), None, None


def _in_chunks(scores: Tensor, targets: Tensor, gradient: Tensor | None) -> Tensor:
    counted = targets != IGNORED
    number = counted.sum().clamp(min=1)
    wide = torch.promote_types(scores.dtype, torch.float32)
    total = torch.zeros((), dtype=wide, device=scores.device)
    for begin in range(0, len(targets), CHUNK):
        rows = slice(begin, begin + CHUNK)
        target, counts = targets[rows].clamp(min=0).unsqueeze(1), counted[rows].unsqueeze(1)
        chances = scores[rows].to(wide).log_softmax(1)
        total -= (chances.gather(1, target) * counts).sum()
        if gradient is not None:
            # d loss / d scores = (softmax − one-hot) / number, and 0 where nothing counts
            slope = chances.exp_().scatter_add_(1, target, -torch.ones_like(target, dtype=wide))
            gradient[rows] = slope.mul_(counts.to(wide) / number)
    return total / number


loss_and_gradient = Operation(_in_chunks)
"""`loss_and_gradient(scores [N, V], targets int64 [N], gradient)`: the mean loss; `gradient` [N, V], which may be the scores
themselves, is written unless it is None."""


def _plain_torch(scores: Tensor, targets: Tensor, inplace: bool) -> Tensor:
    result: Tensor = VocabularyCrossEntropy.apply(scores.flatten(0, -2), targets.flatten(), inplace)  # type: ignore[no-untyped-call]  # torch does not type it
    return result


mean_cross_entropy = Operation(_plain_torch)
"""`mean_cross_entropy(scores [..., V], targets int64 [...], inplace)`, as `vocabulary_cross_entropy` defines it."""


def vocabulary_cross_entropy(scores: Tensor, targets: Tensor, *, inplace: bool = False) -> Tensor:
    """Scalar: mean cross-entropy of `targets` int64 [...] under `scores` [..., V]; IGNORED targets do not count.

    `inplace` says that nobody reads the scores afterwards: their gradient is then written over them. Raises IndexError for a
    target outside the vocabulary.
    """
    return mean_cross_entropy(scores, targets, inplace)
