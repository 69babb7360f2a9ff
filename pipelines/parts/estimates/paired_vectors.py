"""Base class of estimates of word vectors of two languages in one space, from texts and their translations (Guo, Che,
Yarowsky, Wang & Liu 2015, "Cross-lingual Dependency Parsing Based on Distributed Representations", §3).

Shapes: V words of both languages, W elements of a vector.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field, SerializeAsAny, model_validator

from pipelines.errors import DataError
from pipelines.parts.estimates import Estimation, TokenFile, Workspace
from pipelines.parts.estimates.sides_of_pairs import SOURCE, AlignedWords, SideOfPairs
from pipelines.parts.estimates.weighted_neighbours import require_words
from pipelines.parts.estimates.word2vec import Word2Vec
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array
    from transformers import PretrainedConfig

VECTORS = "embeddings.weight"
"""Name of the table of vectors in a backbone of word vectors."""


class PairedVectors(Estimation):
    """Vectors of the words of texts and of their translations in one space.

    Words are aligned by IBM's model 1, and vectors are learnt of each language by itself, by an estimate of its own. A
    word that both languages write alike, such as a number, is a word of the texts. Special tokens have vectors of 0.
    """

    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.STATIC})
    draws: ClassVar[bool] = True
    reads_pairs: ClassVar[bool] = True

    vectors: SerializeAsAny[Estimation] = Field(default_factory=Word2Vec)
    """How the vectors of one language are estimated from its text."""
    rounds: int = Field(5, ge=1, le=100)
    """Rounds of EM of the alignment."""

    @model_validator(mode="after")
    def _of_one_language(self) -> Self:
        if self.vectors.needs_abilities != self.needs_abilities or self.vectors.reads_pairs:
            raise ValueError(f"vectors: {self.vectors.name} gives no vector to each word of a text of one language")
        return self

    @property
    def epochs(self) -> int:
        """Passes over the text, from which the time of a stage is predicted."""
        return int(getattr(self.vectors, "epochs", 0))

    def alignments(self, text: TokenFile, workspace: Workspace) -> tuple[csr_array, NDArray[np.bool_]]:
        """Sparse float64 [V, V]: times that a word of the translations (row) is aligned with one of the texts (column);
        and bool [V]: the words that the texts have.

        Raises DataError for texts that are no pairs, whose pairs do not fit into memory, or whose translations have no
        aligned word of their own.
        """
        require_words(text, self.name)
        unit = AlignedWords(text, self.rounds)
        (folder,) = workspace.run([unit], workspace.folder)
        counts, known = unit.in_folder(folder), words_of(self._side(SOURCE, text, workspace))
        if not counts[~known].nnz:
            raise DataError(
                f"{text.path}: no word of the translations alone is aligned with one of the texts, and {self.name} "
                "knows by nothing else what it means; give pairs of sentences in two languages, or lower "
                "tokenizer.min_count"
            )
        return counts, known

    def of_side(
        self, side: int, text: TokenFile, config: PretrainedConfig, workspace: Workspace, width: int
    ) -> NDArray[np.float64]:
        """[V, width]: the vectors of the words of one side, 0 for all others.

        Raises DataError for a side from which no vectors can be estimated.
        """
        one, sized = self._side(side, text, workspace), deepcopy(config)
        sized.hidden_size = width
        home = workspace.folder / f"vectors-{side}"
        home.mkdir(exist_ok=True)
        weights = self.vectors.weights(one, sized, replace(workspace, folder=home))
        return np.where(words_of(one)[:, None], weights[VECTORS].astype(np.float64), 0.0)

    def _side(self, side: int, text: TokenFile, workspace: Workspace) -> TokenFile:
        unit = SideOfPairs(text, side)
        (folder,) = workspace.run([unit], workspace.folder)
        return unit.in_folder(folder)

    def tiny(self) -> Self:
        return self.model_copy(update={"vectors": self.vectors.tiny(), "rounds": 1})


def words_of(text: TokenFile) -> NDArray[np.bool_]:
    """bool [V]: which words a text has; no special tokens."""
    known = np.asarray(text.counts) > 0
    known[list(text.special)] = False
    return known


def as_weights(vectors: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
    """`vectors` [V, W] as the weights of a backbone of word vectors."""
    return {VECTORS: vectors.astype(np.float32)}
