"""AdamW for CPUs with few cores, computed by the kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.adamw import AdamMoments, TensorTable
from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import WeightCopy, register_copies
from pipelines.parts.accelerators.cpu_kernels.embedding import add_rows, coalesced, collect_row_gradients
from pipelines.parts.accelerators.cpu_kernels.library import loaded_library
from pipelines.parts.optimizers import ClipsGradients, call_with_gradient

NORM_EPSILON = 1e-6
"""Added by torch to the norm before dividing by it."""
TABLES = 16
"""Largest number of tables that are kept: more sets of tensors do not take steps in turn."""


class CompiledAdamW(ClipsGradients, torch.optim.AdamW):
    """torch's fused AdamW (Loshchilov & Hutter 2019), with the same state, that clips gradients within its step.

    Checkpoints of the two are interchangeable. Gradients whose global norm exceeds `clip` are treated as scaled down to
    it, but are not rewritten: nothing reads them after the step. The kernels must be loaded and support all weights
    (`supports`). The bfloat16 copies that layers compute with are updated with their weights (`bfloat16_copies.py`).

    Rows of an embedding table that never had a gradient have moments of exactly 0, and AdamW only decays them. Which
    rows have had one is recorded for tables with sparse gradients; it is no part of the state, since the moments show
    it.

    Args:
        groups: torch's parameter groups. clip: maximum global norm of the gradients. sparse_rows: whether embedding
        look-ups get a sparse gradient of their own (`collect_row_gradients`). Must be False where
            ranks exchange gradients.
        options: `betas` and `eps`.
    """

    def __init__(
        self, groups: list[dict[str, Any]], *, clip: float = math.inf, sparse_rows: bool = False, **options: Any
    ) -> None:
        self.clip = clip
        super().__init__(groups, fused=True, **options)
        tables = [weights for weights in self._weights() if weights.ndim == 2 and sparse_rows]
        self._row_leaves: dict[Tensor, Tensor] = {table: collect_row_gradients(table) for table in tables}
        self._copies: dict[Tensor, WeightCopy] = register_copies(
            (weights for weights in self._weights() if weights.ndim == 2), self
        )

    @staticmethod
    def supports(weights: Iterable[Tensor]) -> bool:
        """Whether the kernels are loaded and support `weights`: float32, on the CPU, contiguous, not sharded among
        ranks."""
        return loaded_library() is not None and all(
            type(one) is nn.Parameter
            and one.device.type == "cpu"
            and one.dtype is torch.float32
            and one.is_contiguous()
            for one in weights
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]  # torch does not type it
        self._tables: dict[tuple[int, ...], TensorTable] = {}
        """The table of the tensors that took a step together, by their addresses: heads take steps in turn."""
        self._rows_with_moments: dict[Tensor, Tensor] = {}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self._tables, self._rows_with_moments = {}, {}

    def zero_grad(self, set_to_none: bool = True) -> None:
        for leaf in self._row_leaves.values():
            leaf.grad = None
        if not set_to_none:
            super().zero_grad(set_to_none=False)
            return
        for weights in self._weights():  # torch's own checks several conditions for each: 0.3 ms a step
            weights.grad = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = call_with_gradient(closure)
        table = self._prepared_table()
        if table is None:
            return loss
        norm = table.norm() if self.clip < math.inf else 0.0
        # as torch clips: a NaN norm clips nothing, an infinite one turns finite gradients into 0
        table.step(self.clip / (norm + NORM_EPSILON) if norm > self.clip else 1.0)
        return loss

    def _weights(self) -> list[nn.Parameter]:
        return [weights for group in self.param_groups for weights in group["params"]]

    def _prepared_table(self) -> TensorTable | None:
        """The table of all weights that have a gradient, with their gradients and the groups' present settings."""
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
        copies = [copy.values if (copy := self._copies.get(one)) is not None else None for one in weights]
        addresses = tuple(one.data_ptr() for one in weights)
        table = self._tables.get(addresses)
        if table is None or not table.is_current(copies):
            if len(self._tables) == TABLES:
                self._tables.clear()
            moments = [self._moments(one) for one in weights]
            table = TensorTable(weights, moments, [self._rows_with_moments.get(one) for one in weights], copies)
            self._tables[addresses] = table
        for begin, end, group in zip([0, *ends], ends, self.param_groups, strict=False):
            first, second = group["betas"]
            table.set(
                begin,
                end,
                rate=group["lr"],
                decay=group["weight_decay"],
                first=first,
                second=second,
                epsilon=group["eps"],
            )
        table.set_gradients(gradients)
        return table

    def _gradient(self, weights: Tensor) -> Tensor | None:
        """The whole gradient: sparse and coalesced where only rows of a table have one."""
        leaf = self._row_leaves.get(weights)
        if leaf is None or leaf.grad is None:
            return weights.grad
        rows = coalesced(leaf.grad)
        if weights.grad is not None:
            leaf.grad, weights.grad = None, add_rows(weights.grad.contiguous(), rows)
            return weights.grad
        if weights not in self._rows_with_moments:
            # from now on the table records which rows have moments
            seen = [one.view(torch.int32).any(1) for one in self._moments(weights)[1:]]
            self._rows_with_moments[weights] = (seen[0] | seen[1]).to(torch.uint8)
            self._tables.clear()
        return rows

    def _moments(self, weights: Tensor) -> AdamMoments:
        state = self.state[weights]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weights), torch.zeros_like(weights)
        return AdamMoments(state["step"], state["exp_avg"], state["exp_avg_sq"])
