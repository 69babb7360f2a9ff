"""Text vectors: embeddings of texts for nearest-neighbour search."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Encode = Callable[[Sequence[str]], NDArray[np.float32]]
    """N texts → float32 [N, D]: rows of unit length, whose inner product is the cosine; zeros for a text without
    content."""


class TextVectors(Component):
    """Base class of text embeddings. A text has the same vector whatever other texts are encoded with it."""

    default_name: ClassVar[str] = "hashed_ngrams"
    libraries: ClassVar[tuple[str, ...]] = ("numpy",)
    """Installed distributions whose versions affect the vectors."""

    memory: ClassVar[int] = 320 * 2**20
    """Bytes of memory that an encoding process takes."""

    @property
    def learns_from(self) -> int:
        """Number of texts that `learn` is called with; 0: none."""
        return 0

    def learn(self, texts: Sequence[str], folder: Path) -> None:
        """Fit on `texts` and write the result into `folder`, for `encoder`; does nothing unless overridden."""

    @abstractmethod
    def encoder(self, folder: Path, root: Path) -> Encode:
        """Function that encodes texts, with what `learn` wrote into `folder`.

        It runs on one thread, so that sums have a fixed order. Paths of params.yaml are relative to `root`.
        """

    def files(self, root: Path) -> dict[str, Path]:
        """Name → file that affects the vectors. Raises RecipeError when one cannot be used."""
        return {}
