"""A mark that the text itself carries as what is to be predicted of it (Go et al. 2009; Felbo et al. 2017,
arXiv:1708.00524, §3.1)."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.row_rearrangement import ROW_LABELS, UNLABELLED
from pipelines.vocabulary import Field

NATURAL_LABELS = Field.of_channel("natural_labels")


class NaturalLabelsCorruption(Corruption, name="natural_labels"):
    """Make the mark in each row, of the annotation `natural_labels`, its class, and mask the tokens of all marks.

    Of several marks in a row one is drawn; a row without any has no label.
    """

    paper = "arXiv:1708.00524"
    needs = frozenset({Field.INPUT_IDS, NATURAL_LABELS})
    provides = frozenset({ROW_LABELS})
    needs_tokens = frozenset({"mask"})

    classes: int = Option(2, ge=2)
    """Number of labels of the annotation, and of classes of the head."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """Raises RecipeError for a mark beyond `classes`."""
        ids = batch[Field.INPUT_IDS]
        values = np.where(is_ordinary(ids, tokens), batch[NATURAL_LABELS].astype(np.int64), 0)
        if (largest := int(values.max(initial=0))) > self.classes:
            raise RecipeError(
                f"corruption natural_labels: a mark has label {largest} of the annotation, and classes is "
                f"{self.classes}; set classes, here and in the head, to the number of the annotation's labels"
            )
        marked = values > 0
        drawn = np.where(marked, random.random(ids.shape), -1).argmax(1)
        labels = values[np.arange(len(ids)), drawn] - 1
        return {
            **batch,
            Field.INPUT_IDS: np.where(marked, tokens.mask, ids),
            ROW_LABELS: np.where(marked.any(1), labels, UNLABELLED),
        }
