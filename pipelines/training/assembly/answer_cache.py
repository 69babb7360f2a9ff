"""What a frozen network says of each item of a stage, asked once: a teacher that reads every item in every epoch says the same.

All items are asked in one pass, shortest first, whichever item a step wants first: what is remembered is then the same however
often training was interrupted. Hidden states are kept in bfloat16: half the memory, and nearer to the teacher's than a student
comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from pipelines.training.batches.examples import InOrder
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.parts.objectives import Batch, Signals
    from pipelines.task_families.encoding import Encoded

CAPACITY = 2**30
"""Bytes that may be remembered; a teacher that says more is asked at every step."""
ASKED_AT_ONCE = 32
"""Items of a batch of the pass."""
OF_ITEMS = frozenset({Signal.LOGITS, Signal.SCORE, Signal.POOLED})
"""Signals that hold one row for an item, of the same width for all."""


class RememberedAnswers:
    """`ask`, which is a function of an item alone, remembered for every item of `items`.

    Called as `ask` is: a batch of items that carries their numbers (`Field.ITEMS`) is answered from memory; any other batch,
    and every one where the answers are of a form or a size that is not remembered, is asked.
    """

    def __init__(self, ask: Callable[[Batch, frozenset[Signal]], Signals], items: Encoded) -> None:
        self._ask, self._items = ask, items
        self._known: dict[frozenset[Signal], _Answers | None] = {}

    def __call__(self, batch: Batch, wanted: frozenset[Signal]) -> Signals:
        numbers = batch.get(Field.ITEMS)
        if numbers is None:
            return self._ask(batch, wanted)
        if wanted not in self._known:
            self._known[wanted] = self._all(wanted, numbers.device)
        answers = self._known[wanted]
        return self._ask(batch, wanted) if answers is None else answers.of(numbers, batch[Field.INPUT_IDS].shape[1])

    def _all(self, wanted: frozenset[Signal], device: torch.device) -> _Answers | None:
        if not wanted <= OF_ITEMS | {Signal.HIDDEN_STATES}:
            return None
        answers = _Answers(self._items.lengths)
        for fields, chosen in _batches(self._items):
            batch = {name: value.to(device) for name, value in fields.items()}
            if not answers.add(chosen, self._ask(batch, wanted), wanted):
                return None
        return answers


class _Answers:
    """Of items of `lengths` [N] tokens."""

    def __init__(self, lengths: NDArray[np.int64]) -> None:
        import torch

        self._lengths = torch.from_numpy(lengths)
        self._begins = torch.cumsum(self._lengths, 0) - self._lengths
        self._rows: dict[Signal, Tensor] = {}
        """[N, …] float32"""
        self._layers: list[Tensor] = []
        """Of each layer, [all tokens, H] bfloat16: the items one after the other."""

    def add(self, chosen: NDArray[np.int64], said: Signals, wanted: frozenset[Signal]) -> bool:
        """Keep what was said of the items `chosen`; False where it cannot be kept."""
        import torch

        numbers = torch.from_numpy(chosen)
        for signal in wanted & OF_ITEMS:
            value = said[signal].float().cpu()
            if len(value) != len(chosen):
                return False
            rows = self._rows.setdefault(signal, value.new_zeros((len(self._lengths), *value.shape[1:])))
            if rows.shape[1:] != value.shape[1:]:
                return False  # a question with fewer choices than another
            rows[numbers] = value
        if Signal.HIDDEN_STATES not in wanted:
            return True
        states: tuple[Tensor, ...] = said[Signal.HIDDEN_STATES]
        if len(states[0]) != len(chosen):
            return False
        if not self._layers:
            tokens, width = int(self._lengths.sum()), states[0].shape[-1]
            if 2 * tokens * width * len(states) > CAPACITY:
                return False
            self._layers = [torch.zeros((tokens, width), dtype=torch.bfloat16) for _ in states]
        real, places = self._places(numbers, states[0].shape[1])
        for layer, state in zip(self._layers, states, strict=True):
            layer[places[real]] = state.cpu()[real].bfloat16()
        return True

    def of(self, numbers: Tensor, length: int) -> dict[Signal, Any]:
        """What was said of the items `numbers` [B], in rows of `length` tokens; zero behind the last of each."""
        device, numbers = numbers.device, numbers.cpu()
        said: dict[Signal, Any] = {signal: rows[numbers].to(device) for signal, rows in self._rows.items()}
        if self._layers:
            real, places = self._places(numbers, length)
            behind = ~real.unsqueeze(-1)
            said[Signal.HIDDEN_STATES] = tuple(
                layer[places].masked_fill_(behind, 0).to(device) for layer in self._layers
            )
        return said

    def _places(self, numbers: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """[B, length]: whether a token is one of its item, and where it is kept."""
        import torch

        within = torch.arange(length)
        real = within < self._lengths[numbers, None]
        return real, (self._begins[numbers, None] + within) * real


def _batches(items: Encoded) -> Iterator[tuple[dict[Field, Tensor], NDArray[np.int64]]]:
    """Every item once: batches, and the numbers of their items."""
    in_order = InOrder(items, ASKED_AT_ONCE)
    for index, chosen in enumerate(in_order.chosen):
        yield {Field(name): value for name, value in in_order[index].items()}, chosen
