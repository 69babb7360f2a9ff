"""The micro-batches that one rank reads of a stage's batches, and the share of each in the loss of its batch.

    batch of step n ──partition──▶ ranks · accumulation steps ──▶ this rank's micro-batches, one after the other

A term of an objective is a mean over something that the micro-batches of a batch hold unequally: predicted tokens,
words, pairs. The mean of a micro-batch is therefore weighted by its share of them, so that the sum over all
micro-batches is the mean over the batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipelines.errors import RecipeError
from pipelines.parts.objectives import Objective
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class Batches(Protocol):
    """The batches of all lines of a stage, for all ranks together."""

    start: int
    """First optimizer step that is still to be taken."""

    def __len__(self) -> int: ...

    def line_of(self, step: int) -> int: ...

    def micro_batch(self, step: int, number: int, of: int) -> dict[str, Tensor]: ...


class CountsTerms(Protocol):
    """A line, as far as its batches are weighted."""

    def term_counts(self, batch: dict[Field, Tensor], *, counted: bool) -> dict[str, int]: ...


@dataclass(frozen=True)
class Partition:
    """How a batch is divided into micro-batches."""

    rank: int = 0
    ranks: int = 1
    accumulated: int = 1
    """Number of micro-batches that a rank reads per optimizer step (gradient accumulation)."""

    @property
    def size(self) -> int:
        """Number of micro-batches in a batch, over all ranks."""
        return self.ranks * self.accumulated


class MicroBatch(NamedTuple):
    """What one rank reads in one forward pass."""

    fields: dict[str, Tensor]
    term_counts: dict[str, int] | None = None
    """Loss term → number of items in this micro-batch that it is a mean over; None where the micro-batch is the whole
    batch."""
    rank_counts: dict[str, int] | None = None
    """The same for all micro-batches of this rank in the batch."""
    counted: bool = True
    """False for a copy of another rank's micro-batch: all ranks run forward and backward together, and this one has no
    rows."""


class MicroBatches:
    """An iterable over this rank's micro-batches from `batches.start` on."""

    def __init__(self, batches: Batches, partition: Partition, lines: Sequence[CountsTerms]) -> None:
        self.batches, self.partition, self.lines = batches, partition, lines

    def __len__(self) -> int:
        return len(self.batches) * self.partition.accumulated

    def __iter__(self) -> Iterator[MicroBatch]:
        for step in range(self.batches.start, len(self.batches)):
            yield from self._of_step(step)

    def _of_step(self, step: int) -> Iterator[MicroBatch]:
        partition = self.partition
        if partition.size == 1:
            yield MicroBatch(self.batches.micro_batch(step, 0, 1))
            return
        micro_batches: list[MicroBatch] = []
        for turn in range(partition.accumulated):
            number = partition.rank * partition.accumulated + turn
            fields = self.batches.micro_batch(step, number, partition.size)
            counted = bool(fields)
            # the last micro-batch of a batch is never empty
            fields = fields or self.batches.micro_batch(step, partition.size - 1, partition.size)
            named = {Field(name): value for name, value in fields.items()}
            counts = self.lines[self.batches.line_of(step)].term_counts(named, counted=counted)
            micro_batches.append(MicroBatch(fields, counts, None, counted))
        assert micro_batches[0].term_counts is not None
        rank_counts = {
            name: sum(one.term_counts[name] for one in micro_batches if one.term_counts is not None)
            for name in micro_batches[0].term_counts
        }
        for one in micro_batches:
            yield one._replace(rank_counts=rank_counts)


def term_counts(
    objectives: Sequence[Objective], batch: dict[Field, Tensor], network: PreTrainedModel, *, counted: bool = True
) -> dict[str, int]:
    """Loss term → number of items that it is a mean over, for all terms of `objectives`.

    All counts are 0 for a micro-batch that is not `counted`, except for terms that every rank computes over the whole
    batch: their gradient is the sum over all ranks.
    """
    result: dict[str, int] = {}
    for objective in objectives:
        counts = objective.counts(batch, network)
        result |= counts if counted or objective.compares_rows else dict.fromkeys(counts, 0)
    return result


def partition_for(
    objectives: Sequence[Objective],
    *,
    rank: int,
    ranks: int,
    corruption_shards: int | None,
    tokens: int,
    device_tokens: int | None,
) -> Partition:
    """The partition of a batch of `tokens` tokens over `ranks` ranks that read at most `device_tokens` in one forward
    pass.

    The number of micro-batches must divide `corruption_shards`; None where a batch can be divided anywhere. Raises
    RecipeError where no partition fits, or where an objective compares rows of a batch that would not be read together.
    """
    if corruption_shards is not None and corruption_shards % ranks:
        raise RecipeError(
            f"training.devices: {ranks} ranks cannot evenly share a batch of {corruption_shards} corruption shards; "
            f"choose a divisor of {corruption_shards}, or a recipe with budget.corruption_shards: {ranks} and a "
            "batch_tokens that it divides"
        )
    possible: Sequence[int]
    if corruption_shards is None:
        possible = range(1, 10**6)
    else:
        per_rank = corruption_shards // ranks
        possible = [number for number in range(1, per_rank + 1) if per_rank % number == 0]
    limit = tokens / ranks if device_tokens is None else device_tokens
    accumulated = next((number for number in possible if tokens / ranks / number <= limit), None)
    if accumulated is None:
        raise RecipeError(
            f"training.device_tokens: {device_tokens}, but the smallest part of a batch has "
            f"{tokens // (corruption_shards or tokens)} tokens; choose more, or a recipe with more "
            "budget.corruption_shards"
        )
    comparing = [objective for objective in objectives if objective.compares_rows]
    if accumulated > 1 and comparing:
        raise RecipeError(
            f"training.device_tokens: objective {comparing[0].name} compares the rows of a batch with each other, so "
            "they cannot be read one part after the other; remove device_tokens, or use more devices"
        )
    return Partition(rank, ranks, accumulated)
