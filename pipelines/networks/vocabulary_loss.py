"""Cross-entropy over a whole vocabulary that needs no more memory than its gradient.

torch keeps the log-probabilities of all positions in float32 between forward and backward pass. Here the gradient is
computed together with the loss, a few rows at a time, in the dtype of the scores: on 32 rows of 128 tokens over 8192
words the loss takes two thirds of the memory in float32 and half of it under bf16 autocast.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from pipelines.networks.operation import Operation

IGNORED = -100
"""Target of a position that is excluded from the loss."""
CHUNK = 512
"""Number of positions converted to float32 at a time."""


class VocabularyCrossEntropy(torch.autograd.Function):
    """`apply(scores [N, V], targets int64 [N], inplace)`: mean over the targets that are not IGNORED; 0 where there is
    none.

    The result is float32, or float64 if the scores are. It can be differentiated once. With `inplace` the gradient may
    overwrite the scores in memory.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, targets: Tensor, inplace: bool) -> Tensor:
        gradient = None
        if ctx.needs_input_grad[0]:
            inplace = inplace and scores.is_contiguous()
            gradient = scores.detach() if inplace else torch.empty_like(scores, memory_format=torch.contiguous_format)
            if inplace:
                # autograd then raises an error where another function has saved the scores, instead of reading other
                # values
                increment_version(scores)
        loss = loss_and_gradient(scores, targets, gradient)
        ctx.save_for_backward(gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, None, None]:
        (gradient,) = ctx.saved_tensors
        # reading one number may save a pass over the whole gradient, but on CUDA it would wait for the device
        if not gradient.is_cuda and float(outer[0]) == 1:
            return gradient, None, None
        return gradient * outer[0].to(gradient.dtype), None, None


def _in_chunks(scores: Tensor, targets: Tensor, gradient: Tensor | None) -> Tensor:
    counted = targets != IGNORED
    count = counted.sum().clamp(min=1)
    dtype = torch.promote_types(scores.dtype, torch.float32)
    total = torch.zeros((), dtype=dtype, device=scores.device)
    for begin in range(0, len(targets), CHUNK):
        rows = slice(begin, begin + CHUNK)
        target, counts = targets[rows].clamp(min=0).unsqueeze(1), counted[rows].unsqueeze(1)
        log_probabilities = scores[rows].to(dtype).log_softmax(1)
        total -= (log_probabilities.gather(1, target) * counts).sum()
        if gradient is not None:
            # d loss / d scores = (softmax − one-hot) / count, and 0 for ignored targets
            chunk_gradient = log_probabilities.exp_().scatter_add_(1, target, -torch.ones_like(target, dtype=dtype))
            gradient[rows] = chunk_gradient.mul_(counts.to(dtype) / count)
    return total / count


loss_and_gradient = Operation(_in_chunks)
"""`loss_and_gradient(scores [N, V], targets int64 [N], gradient)`: the mean loss. Writes the gradient into `gradient`
[N, V], which may share the memory of the scores, unless it is None."""


def _plain_torch(scores: Tensor, targets: Tensor, inplace: bool) -> Tensor:
    # torch does not type it
    result: Tensor = VocabularyCrossEntropy.apply(  # type: ignore[no-untyped-call]
        scores.flatten(0, -2), targets.flatten(), inplace
    )
    return result


mean_cross_entropy = Operation(_plain_torch)
"""`mean_cross_entropy(scores [..., V], targets int64 [...], inplace)`, as `vocabulary_cross_entropy` defines it."""


def vocabulary_cross_entropy(scores: Tensor, targets: Tensor, *, inplace: bool = False) -> Tensor:
    """Scalar: mean cross-entropy of `targets` int64 [...] under `scores` [..., V]; IGNORED targets do not count.

    With `inplace`, to be used if nothing reads the scores afterwards, their gradient overwrites them. Raises IndexError
    for a target outside the vocabulary.
    """
    return mean_cross_entropy(scores, targets, inplace)
