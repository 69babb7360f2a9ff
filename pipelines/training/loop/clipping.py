"""Clipping of gradients by their global norm (Pascanu, Mikolov & Bengio 2013)."""

from __future__ import annotations

import torch

from pipelines.parts.optimizers import ClipsGradients


def clip_gradients(optimizer: torch.optim.Optimizer, limit: float | None) -> None:
    """Scale the gradients of `optimizer` down to the global norm `limit`, in place; None: leave them.

    Lightning refuses to clip for a fused optimizer, because of gradient scalers; bf16 needs none.
    """
    if limit is None or isinstance(optimizer, ClipsGradients):
        return  # the latter clips within its step
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    sparse = [parameter for parameter in parameters if parameter.grad is not None and parameter.grad.is_sparse]
    for parameter in sparse:
        parameter.grad = parameter.grad.coalesce()  # rows that were looked up twice count once
    gradients = [
        parameter.grad.values() if parameter.grad.is_sparse else parameter.grad
        for parameter in parameters
        if parameter.grad is not None
    ]
    norm = torch.nn.utils.get_total_norm(gradients)
    # a norm below the limit needs no rewriting; on a GPU the comparison would wait for the device, on a CPU it is free
    if norm.is_cuda or float(norm) > limit:
        if sparse:
            for gradient in gradients:
                gradient.mul_(torch.clamp(limit / (norm + 1e-6), max=1.0))
        else:
            torch.nn.utils.clip_grads_with_norm_(parameters, limit, norm)
