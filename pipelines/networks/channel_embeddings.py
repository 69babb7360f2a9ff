"""Channels as part of a backbone's input: tables whose rows are added to the vectors of the tokens, and matrices that
project the channels' own vectors.

    backbone(input_ids=…, channels={"boxes": [B, L, 4]})

The tables are modules below the backbone's word embeddings, so that they are saved with the network, count as
embeddings for strategies that order parameters by depth, and are ignored by transformers, which loads the folder
without them. Backbone and architecture do not change: hooks receive the channels and add the vectors before positions,
normalisation and dropout. An accelerator that computes the whole sum of a backbone's embeddings at once finds the
tables by `tables_of`, and takes the look-ups in place of the hook.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from torch import Tensor, nn

from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

ARGUMENT = "channels"
"""Argument of the backbone: channel → [B, L, *shape], int64, or float32 for vectors."""
MODULE = "channels"
"""Name of the tables below the word embeddings."""
SPREAD = 0.02
"""Standard deviation of new tables where the architecture does not state one."""


class ChannelEmbedding(Protocol):
    """A member of the family of embeddings, as floors below that family know it."""

    @property
    def name(self) -> str: ...
    @property
    def channel(self) -> str: ...
    @property
    def tables(self) -> Mapping[str, int]: ...

    def lookups(self, values: Tensor) -> Sequence[tuple[str, Tensor]]: ...
    @property
    def projections(self) -> Mapping[str, int]: ...
    def projected(self, values: Tensor) -> Sequence[tuple[str, Tensor]]: ...


class ChannelTables(nn.ModuleDict):
    """The tables and matrices of several embeddings, by the name of the embedding."""

    def __init__(self, embeddings: Sequence[ChannelEmbedding], width: int, spread: float) -> None:
        super().__init__()
        self.embeddings = tuple(embeddings)
        self._values: Mapping[str, Tensor] | None = None
        for one in embeddings:
            parts: dict[str, nn.Module] = {name: nn.Embedding(rows, width) for name, rows in one.tables.items()}
            parts |= {name: nn.Linear(size, width, bias=False) for name, size in one.projections.items()}
            for part in parts.values():
                nn.init.normal_(cast("Tensor", part.weight), std=spread)
            self[one.name] = nn.ModuleDict(parts)

    def receive(self, backbone: nn.Module, arguments: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Forward pre-hook of the backbone: take the channels out of its arguments."""
        self._values = named.pop(ARGUMENT, None)
        return arguments, named

    def lookups(self) -> list[tuple[nn.Embedding, Tensor]]:
        """(table, int64 [B, L]) of each row to add to the vectors of the tokens, from the channels received last.

        Raises RecipeError where a channel was not received.
        """
        return [
            (cast("nn.Embedding", self._part(one, name)), ids)
            for one in self.embeddings
            for name, ids in one.lookups(self._received(one))
        ]

    def _projections(self) -> list[tuple[nn.Linear, Tensor]]:
        """(matrix, float32 [B, L, width]) of each projection to add, from the channels received last."""
        return [
            (cast("nn.Linear", self._part(one, name)), values)
            for one in self.embeddings
            for name, values in one.projected(self._received(one))
        ]

    def _part(self, embedding: ChannelEmbedding, name: str) -> nn.Module:
        return cast("nn.ModuleDict", self[embedding.name])[name]

    def _received(self, embedding: ChannelEmbedding) -> Tensor:
        """The values of the channel that `embedding` reads. Raises RecipeError where there are none."""
        if self._values is None or embedding.channel not in self._values:
            raise RecipeError(
                f"the network reads the channel {embedding.channel!r}, and these rows have none: they were not made by "
                "a head of the recipe with the annotations of its stage"
            )
        return self._values[embedding.channel]

    def forget(self) -> None:
        """Drop the received channels: the next rows must bring their own."""
        self._values = None

    def add(self, words: nn.Module, arguments: Any, vectors: Tensor) -> Tensor:
        """Forward hook of the word embeddings: add the vectors of the channels to `vectors` [B, L, W]."""
        for table, ids in self.lookups():
            vectors = vectors + table(ids)
        for matrix, values in self._projections():
            vectors = vectors + matrix(values.to(matrix.weight.dtype))
        self.forget()
        return vectors


def tables_of(words: nn.Module) -> ChannelTables | None:
    """The tables whose vectors are added to those of the word embeddings `words`, where nothing else is added and
    nothing else hooks into `words`; None without tables, with projections, or with other hooks."""
    tables = words._modules.get(MODULE)
    if not isinstance(tables, ChannelTables) or any(one.projections for one in tables.embeddings):
        return None
    return tables if list(words._forward_hooks.values()) == [tables.add] else None


def attach(backbone: PreTrainedModel, embeddings: Sequence[ChannelEmbedding]) -> None:
    """Let `backbone` add `embeddings` to the vectors of its tokens; their tables are random."""
    words = cast("nn.Embedding", backbone.get_input_embeddings())
    spread = float(getattr(backbone.config, "initializer_range", None) or SPREAD)
    tables = ChannelTables(embeddings, words.weight.shape[1], spread)
    words.add_module(MODULE, tables)
    backbone.channels_read = tuple(one.channel for one in embeddings)  # type: ignore[assignment]
    backbone.register_forward_pre_hook(tables.receive, with_kwargs=True)
    words.register_forward_hook(tables.add)
