"""What one rank reads of a stage's batches, a piece at a time, and how much each piece weighs in its batch.

    batch of step n ──cut──▶ ranks · accumulated pieces ──▶ this rank's, one after the other

An objective's term is a mean over something that the pieces of a batch hold unequally: predicted tokens, words, pairs. A
piece's mean therefore counts by its share of them, so that the sum over all pieces is the mean over the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pipelines.errors import RecipeError
from pipelines.parts.objectives import Objective
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.recipe.schema import Stage


class Batches(Protocol):
    """The batches of a stage, for all ranks together."""

    start: int
    """The first optimizer step that is still to be made."""

    def __len__(self) -> int: ...

    def piece(self, step: int, number: int, of: int) -> dict[str, Tensor]: ...


@dataclass(frozen=True)
class Cut:
    """Into what a batch is cut."""

    rank: int = 0
    ranks: int = 1
    accumulated: int = 1
    """Pieces that a rank reads before its optimizer makes a step."""

    @property
    def pieces(self) -> int:
        """Of a batch."""
        return self.ranks * self.accumulated


class Piece(NamedTuple):
    """What a rank reads at a time."""

    fields: dict[str, Tensor]
    own: dict[str, int] | None = None
    """How much of it each term of the loss is a mean over; None where the piece is a whole batch."""
    of_rank: dict[str, int] | None = None
    """The same of all that this rank reads of the batch."""
    counts: bool = True
    """False for what another rank reads too: ranks go forward and back together, and this one had nothing to read."""


class Pieces:
    """An iterable over this rank's pieces from `batches.start` on."""

    def __init__(self, batches: Batches, cut: Cut, stage: Stage, network: PreTrainedModel) -> None:
        self.batches, self.cut = batches, cut
        self._stage, self._network = stage, network

    def __len__(self) -> int:
        return len(self.batches) * self.cut.accumulated

    def __iter__(self) -> Iterator[Piece]:
        for step in range(self.batches.start, len(self.batches)):
            yield from self._of(step)

    def _of(self, step: int) -> Iterator[Piece]:
        cut = self.cut
        if cut.pieces == 1:
            yield Piece(self.batches.piece(step, 0, 1))
            return
        read: list[Piece] = []
        for number in range(cut.accumulated):
            fields = self.batches.piece(step, cut.rank * cut.accumulated + number, cut.pieces)
            counts = bool(fields)
            # the last piece of a batch is never empty
            fields = fields or self.batches.piece(step, cut.pieces - 1, cut.pieces)
            named = {Field(name): value for name, value in fields.items()}
            read.append(Piece(fields, counts_of(self._stage, named, self._network, read=counts), None, counts))
        assert read[0].own is not None
        of_rank = {name: sum(piece.own[name] for piece in read if piece.own is not None) for name in read[0].own}
        for piece in read:
            yield piece._replace(of_rank=of_rank)


def counts_of(
    stage: Stage, batch: dict[Field, Tensor], network: PreTrainedModel, *, read: bool = True
) -> dict[str, int]:
    """How much each term of the stage's objectives is a mean over, by the names of the terms.

    A rank that has not `read` the piece counts nothing of it, but for terms that are the whole batch's on every rank: their
    gradient comes back as the sum over all ranks.
    """
    result: dict[str, int] = {}
    for objective in stage.objective:
        counts = objective.counts(batch, network)
        result |= counts if read or objective.compares_rows else dict.fromkeys(counts, 0)
    return result


def cut_for(stage: Stage, *, rank: int, ranks: int, grains: int | None, tokens: int, device_tokens: int | None) -> Cut:
    """How a batch of `tokens` tokens is shared by `ranks` ranks that take `device_tokens` at a time.

    `grains` is what the pieces must divide; None where a batch can be cut anywhere. Raises RecipeError where it cannot be cut
    so, or where an objective compares rows with each other that would not be read together.
    """
    if grains is not None and grains % ranks:
        raise RecipeError(
            f"training.devices: {ranks} ranks cannot share a batch of {grains} parts evenly; choose a divisor of {grains}, "
            f"or a recipe with budget.grains: {ranks} and a batch_tokens that it divides"
        )
    possible = (
        range(1, 10**6) if grains is None else [n for n in range(1, grains // ranks + 1) if grains // ranks % n == 0]
    )
    wanted = tokens / ranks if device_tokens is None else device_tokens
    fitting = next((number for number in possible if tokens / ranks / number <= wanted), None)
    if fitting is None:
        raise RecipeError(
            f"training.device_tokens: {device_tokens}, and the smallest part of a batch has {tokens // (grains or tokens)} "
            "tokens; choose more, or a recipe with a larger budget.grains"
        )
    comparing: list[Objective] = [objective for objective in stage.objective if objective.compares_rows]
    if fitting > 1 and comparing:
        raise RecipeError(
            f"training.device_tokens: objective {comparing[0].name} compares the rows of a batch with each other, so they "
            "cannot be read one part after the other; take device_tokens away, or more devices"
        )
    return Cut(rank, ranks, fitting)
