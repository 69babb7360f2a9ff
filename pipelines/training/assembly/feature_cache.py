"""States of the frozen networks that a model reads, computed once for every item instead of at every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pipelines.training.assembly.answer_cache import AnswerCache
from pipelines.training.assembly.features import readers_of
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.features import FeatureReader
    from pipelines.parts.objectives import Batch, Signals
    from pipelines.task_families.encoding import EncodedExamples

REQUESTED = frozenset({Signal.HIDDEN_STATES})


class FeatureCache:
    """Adds the states of the frozen networks that `network` reads to the batches of `items`.

    They are kept in bfloat16, as `AnswerCache` keeps hidden states, and computed at every step where they are too many.
    A network that trains is run for every batch.
    """

    def __init__(self, network: PreTrainedModel, items: EncodedExamples | None) -> None:
        readers = readers_of(network) if items is not None else []
        self._caches = [
            None if reader.trains or items is None else AnswerCache(_reading(reader, number), items)
            for number, reader in enumerate(readers)
        ]

    def with_states(self, batch: Batch, items: Tensor | None) -> Batch:
        """`batch` with the field `FEATURE_STATES`, if it is of the `items` [B] and a frozen network is read."""
        if items is None or not any(self._caches):
            return batch
        numbered = {**batch, Field.ITEMS: items}
        states = tuple(None if one is None else one(numbered, REQUESTED)[Signal.HIDDEN_STATES] for one in self._caches)
        return {**batch, Field.FEATURE_STATES: states}


def _reading(reader: FeatureReader, number: int) -> Callable[[Batch, frozenset[Signal]], Signals]:
    def forward(batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        fields = (batch[name][:, number] for name in (Field.FEATURE_IDS, Field.FEATURE_MASK, Field.FEATURE_WORDS))
        return {Signal.HIDDEN_STATES: reader.states(*fields)}

    return forward
