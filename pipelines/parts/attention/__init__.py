"""Attention patterns: which tokens of a row attend to which."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pipelines.components import Component
from pipelines.components.declared import DeclaredBatch, wrap_own
from pipelines.vocabulary import Ability, Field

if TYPE_CHECKING:
    from pipelines.task_families.encoding import FieldArrays


class AttentionPattern(Component):
    """A function of the fields of a batch, computed as the batch is made: the network needs to know none of it."""

    default_name = "bidirectional"

    needs: ClassVar[frozenset[Field]] = frozenset()
    """Fields that `visible` reads."""
    may_read: ClassVar[frozenset[Field]] = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    """Fields that `visible` reads where a batch has them. Any other is refused."""
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.VISIBILITY})
    """Abilities that a backbone must offer to be restricted so."""

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        wrap_own(cls, "visible", _visible_of_declared)

    @abstractmethod
    def visible(self, batch: FieldArrays) -> NDArray[np.bool_] | None:
        """bool, broadcast to [B, L, L]: whether token i attends to token j; None if the network needs no restriction.

        Padding and documents that share a row are excluded by `apply`.
        """

    def apply(self, batch: FieldArrays) -> FieldArrays:
        """`batch` with `VISIBLE`, unless the network needs none."""
        visible = self.visible(batch)
        if visible is None:
            return batch
        rows, length = batch[Field.INPUT_IDS].shape
        result = np.array(np.broadcast_to(visible, (rows, length, length)))
        if (mask := batch.get(Field.ATTENTION_MASK)) is not None:
            real = mask != 0
            if (branches := batch.get(Field.BRANCHES)) is not None:
                real = real | (branches > 0)
            result &= real[:, None, :]
        if (starts := batch.get(Field.DOCUMENT_STARTS)) is not None:
            result &= same(np.cumsum(starts != 0, axis=1))
        # a softmax over no token at all would be undefined: padding attends to itself
        result[:, np.arange(length), np.arange(length)] = True
        return {**batch, Field.VISIBLE: result}


def _visible_of_declared(visible: Callable[..., Any]) -> Callable[..., Any]:
    """`visible` with a batch that refuses fields which the pattern does not declare."""

    def read(self: AttentionPattern, batch: FieldArrays) -> NDArray[np.bool_] | None:
        result: NDArray[np.bool_] | None = visible(
            self, DeclaredBatch(batch, self, self.needs | self.may_read, "`needs` or `may_read`")
        )
        return result

    return read


def same(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool [B, L, L]: whether tokens i and j have the same of `values` [B, L]."""
    result: NDArray[np.bool_] = values[:, :, None] == values[:, None, :]
    return result
