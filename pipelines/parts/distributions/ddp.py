"""Data parallelism: every rank holds the whole network (Li et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.distributions import Distribution

if TYPE_CHECKING:
    from pytorch_lightning.strategies import Strategy


class DistributedDataParallel(Distribution, name="ddp"):
    """Weights on every rank; gradients are summed over the ranks while they are computed."""

    paper = "arXiv:2006.15704"

    def strategy(self, ranks: int) -> Strategy:
        from pytorch_lightning.strategies import DDPStrategy

        # strategies freeze and thaw layers while training, and a head need not use all that its body offers
        return DDPStrategy(find_unused_parameters=True)
