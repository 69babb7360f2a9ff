"""A source that is read whole and a target that is read from left to right (Dong et al. 2019, UniLM §2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.attention import AttentionPattern
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field


class SequenceToSequenceAttention(AttentionPattern, name="sequence_to_sequence"):
    """A token of the source attends to the source; one of the target to the source, itself and earlier target tokens.

    The source is the text of the smallest token type of a row, the target all others.
    """

    paper = "arXiv:1905.03197"
    needs = frozenset({Field.INPUT_IDS, Field.TOKEN_TYPE_IDS})

    def visible(self, batch: FieldArrays) -> NDArray[np.bool_]:
        types = batch[Field.TOKEN_TYPE_IDS]
        if (mask := batch.get(Field.ATTENTION_MASK)) is not None:
            types = np.where(mask == 0, types.max(), types)  # padding has type 0, whatever those of the texts are
        source = types == types.min(axis=1, keepdims=True)
        result: NDArray[np.bool_] = source[:, None, :] | (
            ~source[:, :, None] & np.tri(types.shape[1], dtype=np.bool_)[None]
        )
        return result
