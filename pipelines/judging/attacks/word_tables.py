"""Attacks that read a table of words: their counts and their vectors, by another stage."""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from pipelines.judging.attacks import ModelAttack
from pipelines.judging.attacks.letters import WORD

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn
    from transformers import PreTrainedModel


class WordTableAttack(ModelAttack):
    """An attack that reads the words, counts and vectors of another stage, whose backbone has one vector for each word:
    `from: <stage>`."""


class WordTable:
    """Words of a vocabulary, how often each occurs, and which have one vector: a class."""

    def __init__(self, words: list[str], counts: NDArray[np.float64], vectors: NDArray[np.float32]) -> None:
        """`words` [V], `counts` [V], `vectors` [V, H]; of a word that does not occur, the vector is 0."""
        self.words, self._counts, self._vectors = words, counts, vectors

    @cached_property
    def _classes(self) -> dict[str, tuple[list[str], NDArray[np.float64]]]:
        """Word → the words of its class and the sums of their shares up to each."""
        occurring = np.flatnonzero((self._counts > 0) & self._vectors.any(1))
        _, class_of = np.unique(self._vectors[occurring], axis=0, return_inverse=True)
        known: dict[str, tuple[list[str], NDArray[np.float64]]] = {}
        for number in range(int(class_of.max(initial=-1)) + 1):
            members = occurring[class_of == number]
            entry = [self.words[index] for index in members], np.cumsum(self._counts[members])
            known |= dict.fromkeys(entry[0], entry)
        return known

    def of_its_class(self, word: str, drawn: float) -> str | None:
        """A word of the class of `word`, in proportion to its count, by `drawn` from [0, 1); None for an unknown
        word."""
        if word not in self._classes:
            return None
        words, sums = self._classes[word]
        return words[int(np.searchsorted(sums, drawn * sums[-1], side="right"))]


@lru_cache(maxsize=2)
def open_table(folder: Path) -> WordTable:
    """The words of the model in `folder`, without special tokens and symbols."""
    from pipelines.models.opening import open_model

    opened = open_model(folder, "cpu")
    special = set(opened.tokenizer.all_special_tokens)
    counted = getattr(opened.network.config, "token_counts", None) or []
    kept = sorted(
        (index, token)
        for token, index in opened.tokenizer.get_vocab().items()
        if token not in special and WORD.fullmatch(token) and index < len(counted)
    )
    table = cast("nn.Embedding", cast("PreTrainedModel", opened.network.base_model).get_input_embeddings())
    rows = [index for index, _ in kept]
    counts = np.asarray([counted[index] for index in rows], dtype=np.float64)
    return WordTable([token for _, token in kept], counts, table.weight.detach().float().numpy()[rows])
