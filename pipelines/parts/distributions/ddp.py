"""Distributed data parallelism: every rank holds the whole network (Li et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.distributions import Distribution

if TYPE_CHECKING:
    from pytorch_lightning.strategies import Strategy


class DistributedDataParallel(Distribution, name="ddp"):
    """Replicated weights; gradients are all-reduced while the backward pass computes them."""

    paper = "arXiv:2006.15704"

    def strategy(self, ranks: int) -> Strategy:
        from pytorch_lightning.strategies import DDPStrategy

        # strategies freeze and unfreeze layers during training, and a head need not use all parameters of its backbone
        return DDPStrategy(find_unused_parameters=True)
