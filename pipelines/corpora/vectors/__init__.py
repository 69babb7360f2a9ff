"""Vectors: texts as points, so that near ones can be looked for."""

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
    """N texts → [N, D]: rows of length one, whose inner product is their cosine; zeros for a text that says nothing."""


class TextVectors(Component):
    """A way of turning texts into vectors. The same texts give the same vectors, however many are asked at once."""

    default_name: ClassVar[str] = "hashed_ngrams"
    libraries: ClassVar[tuple[str, ...]] = ("numpy",)
    """Installed distributions that shape the vectors."""

    memory: ClassVar[int] = 320 * 2**20
    """Bytes that a process which encodes takes."""

    @property
    def learns_from(self) -> int:
        """How many texts `learn` wants to see; 0: none."""
        return 0

    def learn(self, texts: Sequence[str], folder: Path) -> None:
        """Write into `folder` what `encoder` needs to know of such texts: nothing, where vectors learn from none."""

    @abstractmethod
    def encoder(self, folder: Path, root: Path) -> Encode:
        """What encodes, with what was learned into `folder`. It runs on one thread, so that sums have one order.

        Paths of params.yaml are relative to `root`.
        """

    def files(self, root: Path) -> dict[str, Path]:
        """Files that shape the vectors, by their names. RecipeError when they cannot be used."""
        return {}
