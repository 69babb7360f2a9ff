"""Cache of a frozen network's outputs for each item of a stage: a teacher returns the same for an item in every epoch.

All items are computed in one pass, shortest first, whichever item is needed first, so that the cache is the same
however often training was interrupted. Hidden states are stored in bfloat16: half the memory, and an error far below a
student's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pipelines.training.batches.examples import SortedBatches
from pipelines.vocabulary import PER_ITEM, Field, Signal

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.parts.objectives import Batch, Signals
    from pipelines.task_families.encoding import EncodedExamples

CAPACITY = 2**30
"""Maximum bytes of hidden states in the cache; a teacher with larger ones is called at every step."""
BATCH_SIZE = 32
"""Items in a batch of the pass that fills the cache."""


class AnswerCache:
    """Caches `forward`, whose result for an item must depend on the item alone, for every item of `items`.

    Called like `forward`: a batch with item ids (`Field.ITEMS`) is answered from the cache. Any other batch is
    computed, and so is every batch where the outputs have a shape or size that cannot be cached.
    """

    def __init__(self, forward: Callable[[Batch, frozenset[Signal]], Signals], items: EncodedExamples) -> None:
        self._forward, self._items = forward, items
        self._caches: dict[frozenset[Signal], _ItemSignals | None] = {}

    def __call__(self, batch: Batch, requested: frozenset[Signal]) -> Signals:
        ids = batch.get(Field.ITEMS)
        if ids is None:
            return self._forward(batch, requested)
        if requested not in self._caches:
            self._caches[requested] = self._compute_all(requested, ids.device)
        cache = self._caches[requested]
        return self._forward(batch, requested) if cache is None else cache.get(ids, batch[Field.INPUT_IDS].shape[1])

    def _compute_all(self, requested: frozenset[Signal], device: torch.device) -> _ItemSignals | None:
        if not requested <= PER_ITEM | {Signal.HIDDEN_STATES}:
            return None
        cache = _ItemSignals(self._items.lengths)
        for fields, chosen in _batches(self._items):
            batch = {name: value.to(device) for name, value in fields.items()}
            if not cache.add(chosen, self._forward(batch, requested), requested):
                return None
        return cache


class _ItemSignals:
    """Signals of items with `lengths` [N] tokens."""

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        import torch

        self._lengths = torch.from_numpy(lengths)
        self._begins = torch.cumsum(self._lengths, 0) - self._lengths
        self._rows: dict[Signal, Tensor] = {}
        """Signal → [N, …] float32."""
        self._layers: list[Tensor] = []
        """Hidden states per layer, [all tokens, H] bfloat16: the items concatenated."""

    def add(self, chosen: NDArray[np.int64], signals: Signals, requested: frozenset[Signal]) -> bool:
        """Store the `requested` signals of the items `chosen`; False where they cannot be stored."""
        import torch

        ids = torch.from_numpy(chosen)
        for signal in requested & PER_ITEM:
            value = signals[signal].float().cpu()
            if len(value) != len(chosen):
                return False
            rows = self._rows.setdefault(signal, value.new_zeros((len(self._lengths), *value.shape[1:])))
            if rows.shape[1:] != value.shape[1:]:
                return False  # e.g. questions with different numbers of choices
            rows[ids] = value
        if Signal.HIDDEN_STATES not in requested:
            return True
        states: tuple[Tensor, ...] = signals[Signal.HIDDEN_STATES]
        if len(states[0]) != len(chosen):
            return False
        if not self._layers:
            tokens, width = int(self._lengths.sum()), states[0].shape[-1]
            if 2 * tokens * width * len(states) > CAPACITY:
                return False
            self._layers = [torch.zeros((tokens, width), dtype=torch.bfloat16) for _ in states]
        real, positions = self._positions(ids, states[0].shape[1])
        for layer, state in zip(self._layers, states, strict=True):
            layer[positions[real]] = state.cpu()[real].bfloat16()
        return True

    def get(self, ids: Tensor, length: int) -> dict[Signal, Any]:
        """The signals of the items `ids` [B], in rows of `length` tokens; zero after the last token of each."""
        device, ids = ids.device, ids.cpu()
        signals: dict[Signal, Any] = {signal: rows[ids].to(device) for signal, rows in self._rows.items()}
        if self._layers:
            real, positions = self._positions(ids, length)
            padding = ~real.unsqueeze(-1)
            signals[Signal.HIDDEN_STATES] = tuple(
                layer[positions].masked_fill_(padding, 0).to(device) for layer in self._layers
            )
        return signals

    def _positions(self, ids: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """[B, length]: whether a token belongs to its item (else padding), and its index in `_layers`."""
        import torch

        within = torch.arange(length)
        real = within < self._lengths[ids, None]
        return real, (self._begins[ids, None] + within) * real


def _batches(items: EncodedExamples) -> Iterator[tuple[dict[Field, Tensor], NDArray[np.int64]]]:
    """Every item once: batches, and the indices of their items."""
    batches = SortedBatches(items, BATCH_SIZE)
    for index, chosen in enumerate(batches.chosen):
        yield {Field(name): value for name, value in batches[index].items()}, chosen
