"""The marker between two clauses as what is to be predicted (Sun et al. 2019, ERNIE 2.0 §4.2.3, discourse relation;
Sileo et al. 2019, arXiv:1903.11850)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.row_rearrangement import ROW_LABELS, UNLABELLED
from pipelines.parts.corruptions.segment_pairs import SegmentPairs
from pipelines.vocabulary import Field

SPACES = "Ġ▁"
"""What tokenizers write for the space before a word."""


class DiscourseMarkers(SegmentPairs, name="discourse_markers"):
    """Divide each row at a discourse marker, which is taken out: the class of the row is the marker.

    A marker is a single token of the vocabulary. Of several in a row one is drawn; a row without any has no label, and
    is not divided. Raises RecipeError where none of the markers is in the vocabulary.
    """

    paper = "arXiv:1907.12412"
    provides = SegmentPairs.provides - {Field.SEGMENT_LABELS} | {ROW_LABELS}

    markers: tuple[str, ...] = Option(
        (
            *("although", "because", "but", "however", "if", "instead", "otherwise"),
            *("since", "so", "then", "therefore", "thus", "when", "while"),
        ),
        min_length=2,
    )
    """Words that say how a clause is related to the one before, in small letters."""

    @property
    def classes(self) -> int:
        return len(self.markers)

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        table = _classes(self.markers, tokens.texts, tokens.size)
        marked = table[batch[Field.INPUT_IDS]]
        draws = np.where(self.divisible(batch, tokens) & (marked >= 0), random.random(marked.shape), -1)
        splits = np.where((draws >= 0).any(1), draws.argmax(1), -1)
        labels = np.where(splits >= 0, marked[np.arange(len(splits)), splits], UNLABELLED)
        kept = {name: value for name, value in batch.items() if name not in self.replaces}
        result = self.divided(kept, splits, tokens, labels)
        result[ROW_LABELS] = result.pop(Field.SEGMENT_LABELS)
        return result


@lru_cache(maxsize=4)
def _classes(markers: tuple[str, ...], texts: tuple[str, ...], size: int) -> NDArray[np.int64]:
    """int64 [size]: the index of each token among `markers`, −1 for others. RecipeError where `texts` have none."""
    indices = {marker: index for index, marker in enumerate(markers)}
    table = np.full(size, -1, dtype=np.int64)
    for number, text in enumerate(texts):
        table[number] = indices.get(text.lstrip(SPACES).lower(), -1)
    if texts and table.max() < 0:
        raise RecipeError(
            f"corruption discourse_markers: none of {', '.join(markers)} is a token of the vocabulary; name markers of "
            "the corpus's language that the tokenizer has as single tokens"
        )
    return table
