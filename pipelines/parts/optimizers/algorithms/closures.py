"""The closure that torch's optimizers may be given, which computes the loss and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def call_with_gradient(closure: Callable[[], Any] | None) -> Any:
    """The loss that `closure` returns, computed with gradients inside a step without; None if there is no closure."""
    if closure is None:
        return None
    with torch.enable_grad():
        return closure()
