"""Attention within documents (Krell et al. 2021, §3.2.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.attention import AttentionPattern, same
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field


class WithinDocuments(AttentionPattern, name="within_documents"):
    """A token attends to the tokens of its own document, in rows of any layout that hold pieces of several.

    The layout `packed_documents` needs no pattern: its rows are restricted as they are, by a faster computation.
    """

    paper = "arXiv:2107.02027"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS})

    def visible(self, batch: FieldArrays) -> NDArray[np.bool_]:
        return same(batch[Field.DOCUMENTS])
