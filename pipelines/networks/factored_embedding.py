"""A table of embeddings as the product of a table of few columns and a projection (Acharya et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class FactoredEmbedding(nn.Module):
    """Row i of the table [V, H] is the `projection` of row i of `vectors` [V, R]."""

    def __init__(self, vectors: Tensor, projection: Tensor, padding_idx: int | None = None) -> None:
        """`vectors` [V, R], `projection` [H, R]. Draws no random numbers."""
        super().__init__()
        # torch types neither of the two functions
        self.vectors: nn.Embedding = nn.Embedding.from_pretrained(  # type: ignore[no-untyped-call]
            vectors, freeze=False, padding_idx=padding_idx
        )
        width, rank = projection.shape
        self.projection: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
            nn.Linear, rank, width, bias=False
        )
        self.projection.weight = nn.Parameter(projection)

    @classmethod
    @torch.no_grad()
    def nearest(cls, table: nn.Embedding, rank: int) -> FactoredEmbedding:
        """The product of rank `rank` with the smallest squared distance to `table` (Eckart & Young 1936): the leading
        right singular vectors, and the coordinates of each row among them."""
        weight = table.weight.detach().float()
        # eigenvectors of the small Gram matrix; a decomposition of the table itself takes many times as long
        _, vectors = torch.linalg.eigh((weight.T @ weight).double().cpu())
        leading = vectors[:, -rank:].flip(1).to(weight)
        return cls((weight @ leading).to(table.weight), leading.contiguous().to(table.weight), table.padding_idx)

    @property
    def weight(self) -> Tensor:
        """[V, R]: the vectors before their projection, where other code looks for the table of a network."""
        return self.vectors.weight

    def forward(self, ids: Tensor) -> Tensor:
        result: Tensor = self.projection(self.vectors(ids))
        return result
