"""AdamW for a processor with few cores, over kernels of our own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.adamw import Moments, Table
from pipelines.parts.accelerators.cpu_kernels.embedding import add_rows, each_once, take_rows
from pipelines.parts.accelerators.cpu_kernels.library import opened
from pipelines.parts.accelerators.cpu_kernels.narrow import Kept, keep
from pipelines.parts.optimizers import ClipsGradients

TINY = 1e-6
"""What torch adds to a norm before it divides by it."""


class CompiledAdamW(ClipsGradients, torch.optim.AdamW):
    """torch's fused AdamW (Loshchilov & Hutter 2019), with the same state, that clips within its step.

    A checkpoint of either is one of the other. Gradients longer than `clip` together count as if scaled down to it, and stay
    themselves what they are: nobody reads them after the step. The kernels must be loaded, and be able to compute all weights
    (`takes`). The bfloat16 copies that layers compute with are written with their weights (`narrow.py`).

    Rows of a table that never had a gradient have moments of exactly 0: all that AdamW does to them is decay. Which ones have had
    one is remembered for tables whose gradient comes in rows, and not a part of the state: it is seen in the moments.

    Args:
        groups: torch's parameter groups.
        clip: the norm of all gradients at most.
        in_rows: whether what embeddings look up has a gradient of its own, sparse (`take_rows`). Where ranks exchange gradients it
            must not.
        options: `betas` and `eps`.
    """

    def __init__(
        self, groups: list[dict[str, Any]], *, clip: float = math.inf, in_rows: bool = False, **options: Any
    ) -> None:
        self.clip = clip
        super().__init__(groups, fused=True, **options)
        tables = [weights for weights in self._weights() if weights.ndim == 2 and in_rows]
        self._apart: dict[Tensor, Tensor] = {table: take_rows(table) for table in tables}
        self._kept: dict[Tensor, Kept] = keep((weights for weights in self._weights() if weights.ndim == 2), self)

    @staticmethod
    def takes(weights: Iterable[Tensor]) -> bool:
        """Whether the kernels are here and can compute `weights`: float32, on the CPU, not divided among ranks."""
        return opened() is not None and all(
            type(one) is nn.Parameter
            and one.device.type == "cpu"
            and one.dtype is torch.float32
            and one.is_contiguous()
            for one in weights
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch does not type it
        self._table: Table | None = None
        """Of the tensors that took the last step."""
        self._moved: dict[Tensor, Tensor] = {}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._table, self._moved = None, {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        for apart in self._apart.values():
            apart.grad = None
        if not set_to_none:
            super().zero_grad(set_to_none=False)
            return
        for weights in self._weights():  # torch's own asks each a number of things first: 0.3 ms a step
            weights.grad = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss: Tensor | float | None = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        table = self._read()
        if table is None:
            return loss
        norm = table.norm() if self.clip < math.inf else 0.0
        # as torch clips: a norm that is no number clips nothing, an infinite one leaves 0 of what is finite
        table.step(self.clip / (norm + TINY) if norm > self.clip else 1.0)
        return loss

    def _weights(self) -> list[nn.Parameter]:
        return [weights for group in self.param_groups for weights in group["params"]]

    def _read(self) -> Table | None:
        """The table of what has a gradient now, with these gradients and the settings of now."""
        weights: list[Tensor] = []
        gradients: list[Tensor] = []
        ends: list[int] = []
        for group in self.param_groups:
            for one in group["params"]:
                if (gradient := self._gradient(one)) is not None:
                    weights.append(one)
                    gradients.append(gradient)
            ends.append(len(weights))
        if not weights:
            return None
        copies = [kept.values if (kept := self._kept.get(one)) is not None else None for one in weights]
        if self._table is None or not self._table.stands(weights, copies):
            moments = [self._moments(one) for one in weights]
            self._table = Table(weights, moments, [self._moved.get(one) for one in weights], copies)
        for begin, end, group in zip([0, *ends], ends, self.param_groups, strict=False):
            first, second = group["betas"]
            self._table.set(
                begin,
                end,
                rate=group["lr"],
                decay=group["weight_decay"],
                first=first,
                second=second,
                epsilon=group["eps"],
            )
        self._table.read(gradients)
        return self._table

    def _gradient(self, weights: Tensor) -> Tensor | None:
        """All of it: where there is nothing but rows, these, each once."""
        apart = self._apart.get(weights)
        if apart is None or apart.grad is None:
            return weights.grad
        rows = each_once(apart.grad)
        if weights.grad is not None:
            apart.grad, weights.grad = None, add_rows(weights.grad.contiguous(), rows)
            return weights.grad
        if weights not in self._moved:
            # its table remembers from now on which rows have moments
            seen = [one.view(torch.int32).any(1) for one in self._moments(weights)[1:]]
            self._moved[weights] = (seen[0] | seen[1]).to(torch.uint8)
            self._table = None
        return rows

    def _moments(self, weights: Tensor) -> Moments:
        state = self.state[weights]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weights), torch.zeros_like(weights)
        return Moments(state["step"], state["exp_avg"], state["exp_avg_sq"])
