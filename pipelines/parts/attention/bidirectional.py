"""Attention to both sides, what every encoder does by itself (Devlin et al. 2018)."""

from __future__ import annotations

from pipelines.parts.attention import AttentionPattern
from pipelines.task_families.encoding import FieldArrays
from pipelines.vocabulary import Ability


class Bidirectional(AttentionPattern, name="bidirectional"):
    """No restriction: each token attends to what its backbone lets it attend to."""

    paper = "arXiv:1810.04805"
    needs_abilities = frozenset[Ability]()

    def visible(self, batch: FieldArrays) -> None:
        return None
