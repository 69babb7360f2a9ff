"""The two sides of a text of translations: each as a text of its own, and how often their words are aligned.

Shapes: N tokens of a text and its translations, V words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.estimates.translation_clusters import run_numbers, translations_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from pipelines.parts.estimates import TokenFile

SOURCE, TARGET = 0, 1
"""Side of the texts, and of their translations."""
TOKENS, ALIGNED = "tokens.bin", "aligned.npz"
"""Files of the units of work."""


@dataclass(frozen=True)
class SideOfPairs:
    """The texts, or their translations, as a text of its own: a unit of work.

    A text and its translation are neighbouring runs of `text`, each with the end of a document after it.
    """

    text: TokenFile
    side: int
    """SOURCE or TARGET."""

    @property
    def name(self) -> str:
        return f"side-{self.side}"

    def __call__(self, folder: Path) -> None:
        tokens = self.text.tokens
        of_side = run_numbers(tokens.astype(np.int64), self.text.end) % 2 == self.side
        tokens[of_side].tofile(folder / TOKENS)

    def in_folder(self, folder: Path) -> TokenFile:
        """The text that was written into `folder`; its words have the numbers that they have in the whole text."""
        one = replace(self.text, path=folder / TOKENS)
        return replace(one, counts=tuple(np.bincount(one.tokens, minlength=self.text.vocabulary_size).tolist()))


@dataclass(frozen=True)
class AlignedWords:
    """How often each word of the translations is aligned with each word of the texts: a unit of work."""

    text: TokenFile
    rounds: int
    """Rounds of EM of the alignment."""

    @property
    def name(self) -> str:
        return "aligned"

    def __call__(self, folder: Path) -> None:
        """Raises DataError for texts that are no pairs, or whose pairs do not fit into memory."""
        tokens = self.text.tokens.astype(np.int64)
        became = translations_of(tokens, run_numbers(tokens, self.text.end), self.text, self.rounds)
        links = np.flatnonzero(became >= 0)
        cells, counts = np.unique(became[links] * self.text.vocabulary_size + tokens[links], return_counts=True)
        np.savez(folder / ALIGNED, cells=cells, counts=counts)

    def in_folder(self, folder: Path) -> csr_array:
        """Sparse float64 [V, V]: times that a word of the translations (row) is aligned with one of the texts
        (column)."""
        from scipy.sparse import csr_array

        size = self.text.vocabulary_size
        with np.load(folder / ALIGNED) as stored:
            rows, columns = np.divmod(stored["cells"], size)
            return csr_array((stored["counts"].astype(np.float64), (rows, columns)), shape=(size, size))
