"""Conditions under which a kernel may replace a layer or a whole block of layers."""

from __future__ import annotations

from types import FunctionType

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_module

from pipelines.parts.accelerators.cpu_kernels.library import loaded_library


def same_bytecode(forward: object, known: object) -> bool:
    """Whether two functions have the same bytecode: transformers copies its blocks from one model family to another."""
    if not isinstance(forward, FunctionType) or not isinstance(known, FunctionType):
        return False
    first, second = (
        # the docstring is the first constant, and no part of the computation
        (code.co_code, code.co_names, code.co_varnames, code.co_argcount, code.co_consts[1:], code.co_freevars)
        for code in (forward.__code__, known.__code__)
    )
    return first == second


def has_no_hooks(*modules: nn.Module, replaced: nn.Module | None = None) -> bool:
    """Whether skipping the calls of `modules` goes unnoticed: no hooks, and no `forward` set on the instance.

    The forward hooks of `replaced` are ignored: the caller computes what they do.
    """
    if torch_module._has_any_global_hook():  # type: ignore[no-untyped-call]  # torch does not type it
        return False
    return not any(
        (module._forward_hooks and module is not replaced)
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
        or "forward" in module.__dict__
        for module in modules
    )


def trains_in_bfloat16(states: Tensor, *weights: Tensor | None) -> bool:
    """Whether this is a training step on the CPU under bfloat16 autocast, with `states` [..., I] and plain float32
    `weights`."""
    return (
        loaded_library() is not None
        and torch.is_grad_enabled()
        and states.device.type == "cpu"
        and states.dtype in (torch.bfloat16, torch.float32)
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") is torch.bfloat16
        # weights that are sharded among ranks are no plain parameters
        and all(type(weight) is nn.Parameter and weight.dtype is torch.float32 for weight in weights)
    )
