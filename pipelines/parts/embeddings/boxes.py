"""Two-dimensional position embeddings (Xu et al. 2020, LayoutLM §2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding

if TYPE_CHECKING:
    from torch import Tensor


class BoxEmbedding(Embedding, name="boxes"):
    """Vectors for the edges of a token's box, its width and its height.

    Left and right edges share a table, upper and lower edges another. Width and height, which the authors' code added
    to the four edges of the paper, have tables of their own.
    """

    paper = "arXiv:1912.13318"
    channel: ClassVar[str] = "boxes"
    shape: ClassVar[tuple[int, ...]] = (4,)

    size: int = Field(1024, gt=0)
    """Number of positions along an edge of the page."""

    @property
    def tables(self) -> Mapping[str, int]:
        return dict.fromkeys(("x", "y", "height", "width"), self.size)

    def lookups(self, values: Tensor) -> Sequence[tuple[str, Tensor]]:
        left, upper, right, lower = values.unbind(-1)
        return [
            ("x", left),
            ("y", upper),
            ("x", right),
            ("y", lower),
            ("height", lower - upper),
            ("width", right - left),
        ]
