"""When a layer may compute in bfloat16 by itself, and a block of layers for the modules inside it."""

from __future__ import annotations

from types import FunctionType

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torchs

from pipelines.parts.accelerators.cpu_kernels.library import opened


def same_program(forward: object, known: object) -> bool:
    """Whether two functions do the same, instruction by instruction: transformers copies its blocks from one family to another."""
    if not isinstance(forward, FunctionType) or not isinstance(known, FunctionType):
        return False
    one, other = forward.__code__, known.__code__
    told = [  # a docstring is the first constant, and none of the program
        (code.co_code, code.co_names, code.co_varnames, code.co_argcount, code.co_consts[1:], code.co_freevars)
        for code in (one, other)
    ]
    return told[0] == told[1]


def asks_nobody(*modules: nn.Module) -> bool:
    """Whether nobody would notice that `modules` are not called: no hooks, and no `forward` of their own."""
    if torchs._has_any_global_hook():  # type: ignore[no-untyped-call]  # torch does not type it
        return False
    return not any(
        one._forward_hooks
        or one._forward_pre_hooks
        or one._backward_hooks
        or one._backward_pre_hooks
        or "forward" in one.__dict__
        for one in modules
    )


def trains_narrow(states: Tensor, *weights: Tensor | None) -> bool:
    """Whether this is a training step on the CPU in bfloat16 that reads `states` [..., I], and `weights` are plain and float32."""
    return (
        opened() is not None
        and torch.is_grad_enabled()
        and states.device.type == "cpu"
        and states.dtype in (torch.bfloat16, torch.float32)
        and torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") is torch.bfloat16
        # what is divided among ranks is no plain parameter
        and all(type(one) is nn.Parameter and one.dtype is torch.float32 for one in weights)
    )
