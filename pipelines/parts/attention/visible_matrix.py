"""The visible matrix of a sentence tree (Liu et al. 2019, K-BERT §3.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.attention import AttentionPattern, same
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Field


class VisibleMatrix(AttentionPattern, name="visible_matrix"):
    """Tokens of the text attend to each other; an injected fact and the entity it is about attend to each other.

    Equation 4: what is not in the same branch of the tree is not visible. So an injected fact reaches the rest of the
    text through its entity alone, and never another fact.
    """

    paper = "arXiv:1909.07606"
    needs = frozenset({Field.INPUT_IDS, Field.BRANCHES, Field.ENTITIES})

    def visible(self, batch: FieldArrays) -> NDArray[np.bool_]:
        branches, entities = batch[Field.BRANCHES], batch[Field.ENTITIES]
        injected = branches > 0
        about = same(entities) & (entities > 0)[:, :, None] & (injected[:, :, None] != injected[:, None, :])
        result: NDArray[np.bool_] = same(branches) | about
        return result
