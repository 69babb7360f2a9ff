"""The bottom of BERT (Devlin et al. 2019, fig. 2) as one function: three embeddings summed, layer normalisation, dropout.

Looked up and added one after the other, the states of a small network are written and read six times before its first layer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.block import asks_nobody, trains_narrow
from pipelines.parts.accelerators.cpu_kernels.dropout import Draw, Dropout, drawn
from pipelines.parts.accelerators.cpu_kernels.embedding import Embedding, summed_rows
from pipelines.parts.accelerators.cpu_kernels.layer_norm import LayerNorm
from pipelines.parts.accelerators.cpu_kernels.library import (
    FLAG,
    PARTS,
    POINTER,
    REAL,
    SEED,
    SHARE,
    SIZE,
    VECTOR,
    Kernel,
)

EMBEDDING_SUM = Kernel(
    "cursus_embedding_sum", POINTER, FLAG, *[POINTER] * 5, SIZE, SIZE, REAL, SEED, SHARE, REAL, FLAG, POINTER
)
EMBEDDING_SUM_BACKWARD = Kernel(
    "cursus_embedding_sum_backward", POINTER, FLAG, *[POINTER] * 6, SIZE, SIZE, SIZE, SEED, SHARE, REAL, FLAG
)


class Of(NamedTuple):
    """How a table is read."""

    skipped: int | None
    """The row that learns nothing."""
    in_rows: bool
    """Whether its gradient is taken in rows."""


class NormedEmbeddings(torch.autograd.Function):
    """`apply(gain [W], shift [W], epsilon, draw, shape, read, *tables, *ids)`: bfloat16 [B, L, W] with `shape` = (B, L).

    Dropout of the layer normalisation of the sum of what `ids` look up in `tables` [V, W], which are float32 and read as `read`
    says. Each of `ids` is int64 [B, L], [1, L] or [1, 1]: the same for all texts, or for all tokens.

    Raises IndexError for an id that its table has no row of.
    """

    @staticmethod
    def forward(
        ctx: Any,
        gain: Tensor,
        shift: Tensor,
        epsilon: float,
        draw: Draw,
        shape: tuple[int, int],
        read: tuple[Of, ...],
        *given: Tensor,
    ) -> Tensor:
        tables, ids = given[: len(read)], [one.contiguous() for one in given[len(read) :]]
        width, count = len(gain), shape[0] * shape[1]
        result = torch.empty(*shape, width, dtype=torch.bfloat16)
        moments, wrong = torch.empty(2, count), torch.empty((), dtype=torch.int64)
        looked = _looked(tables, ids)
        EMBEDDING_SUM(
            looked.data_ptr(), len(tables), gain.data_ptr(), shift.data_ptr(), result.data_ptr(), moments.data_ptr(),
            moments[1].data_ptr(), count, width, epsilon, draw.seed, draw.dropped, draw.scale, torch.get_num_threads(),
            wrong.data_ptr(),
        )  # fmt: skip
        if wrong:
            raise IndexError(_beyond(tables, ids))
        ctx.save_for_backward(gain, moments, *tables, *ids)
        ctx.draw, ctx.read = draw, read
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        read: tuple[Of, ...] = ctx.read
        gain, moments, *given = ctx.saved_tensors
        tables, ids = given[: len(read)], given[len(read) :]
        gradient, draw = outer[0].contiguous(), ctx.draw
        count, width = moments.shape[1], len(gain)
        to_sums, parts = torch.empty(gradient.shape), torch.empty(2, PARTS, width)
        looked = _looked(tables, ids)
        EMBEDDING_SUM_BACKWARD(
            looked.data_ptr(), len(tables), gradient.data_ptr(), gain.data_ptr(), moments.data_ptr(), moments[1].data_ptr(),
            to_sums.data_ptr(), parts.data_ptr(), count, width, PARTS, draw.seed, draw.dropped, draw.scale,
            torch.get_num_threads(),
        )  # fmt: skip
        needs = ctx.needs_input_grad
        to_gain, to_shift = (parts[number].sum(0) if needs[number] else None for number in (0, 1))
        over_texts = to_sums.sum(0, keepdim=True)  # what all texts look up alike is one row
        to_tables = [
            _of_table(over_texts if len(which) == 1 else to_sums, table, which, how) if needs[at] else None
            for at, (table, which, how) in enumerate(zip(tables, ids, read, strict=True), NOT_TABLES)
        ]
        return to_gain, to_shift, None, None, None, None, *to_tables, *[None] * len(ids)


NOT_TABLES = 6
"""Arguments of the function before its tables."""


def _looked(tables: Sequence[Tensor], ids: Sequence[Tensor]) -> Tensor:
    """int64 [tables, 4], as the kernel reads it: where a table and its ids stand, its height, how many ids there are."""
    return torch.tensor(
        [(table.data_ptr(), one.data_ptr(), len(table), one.numel()) for table, one in zip(tables, ids, strict=True)]
    )


def _beyond(tables: Sequence[Tensor], ids: Sequence[Tensor]) -> str:
    """Which of `ids` no row of its table is for."""
    told = [(int(one.min()), int(one.max()), len(table)) for table, one in zip(tables, ids, strict=True)]
    low, high, rows = next(one for one in told if one[0] < 0 or one[1] >= one[2])
    return f"index out of range: ids from {low} to {high}, in an embedding of {rows} rows"


def _of_table(gradient: Tensor, table: Tensor, ids: Tensor, how: Of) -> Tensor:
    """The gradient of `table` [V, W], of which `gradient` [B, L, W] arrives for `ids` [B, L or 1]."""
    if ids.shape[1] < gradient.shape[1]:
        gradient = gradient.sum(1, keepdim=True)
    rows, which = gradient.flatten(0, 1), ids.flatten()
    if how.in_rows:
        return summed_rows(which, rows, len(table), how.skipped)
    skipped = -1 if how.skipped is None else how.skipped
    return torch.ops.aten.embedding_dense_backward(rows, which, len(table), skipped, False)  # type: ignore[no-any-return]


class EmbeddingSum(nn.Module):
    """Beside a class of transformers with these children, whose program is BERT's."""

    word_embeddings: Embedding
    token_type_embeddings: Embedding
    position_embeddings: Embedding
    LayerNorm: nn.LayerNorm
    dropout: nn.Dropout
    position_ids: Tensor
    token_type_ids: Tensor
    """Zeros: of what type a token is unless told."""

    def forward(
        self, input_ids: Tensor | None = None, token_type_ids: Tensor | None = None, position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None, past_key_values_length: int = 0,
    ) -> Tensor:  # fmt: skip
        """[B, L, W] of `input_ids` [B, L] and, where given, `token_type_ids` and `position_ids` [B or 1, L]."""
        ids = self._ids(input_ids, token_type_ids, position_ids)
        if ids is None or inputs_embeds is not None or past_key_values_length or not self._computes_alone:
            said: Tensor = super().forward(
                input_ids, token_type_ids, position_ids, inputs_embeds, past_key_values_length
            )
            return said
        norm, modules = self.LayerNorm, self._tables
        leaves = [one.in_rows() for one in modules]
        tables = [one.weight if leaf is None else leaf for one, leaf in zip(modules, leaves, strict=True)]
        read = tuple(Of(one.padding_idx, leaf is not None) for one, leaf in zip(modules, leaves, strict=True))
        result: Tensor = NormedEmbeddings.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            norm.weight, norm.bias, norm.eps, drawn(self.dropout.p), tuple(ids[0].shape), read, *tables, *ids
        )  # fmt: skip
        return result

    def _ids(self, words: Tensor | None, kinds: Tensor | None, places: Tensor | None) -> list[Tensor] | None:
        """What to look up, int64 [B, L], [B or 1, L] or [1, 1], and [B or 1, L]; None where what is given has another shape."""
        if words is None or words.ndim != 2:
            return None
        texts, length = words.shape
        places = self.position_ids[:, :length] if places is None else places
        if any(one.shape not in ((texts, length), (1, length)) for one in (places, kinds) if one is not None):
            return None
        kinds = self.token_type_ids[:1, :1] if kinds is None else kinds
        return [one.long() for one in (words, kinds, places)]

    @property
    def _tables(self) -> tuple[Embedding, ...]:
        return self.word_embeddings, self.token_type_embeddings, self.position_embeddings

    @property
    def _computes_alone(self) -> bool:
        tables, norm, dropout = self._tables, self.LayerNorm, self.dropout
        weights = [one.weight for one in tables]
        return (
            all(type(one) is Embedding and one.is_plain and one.weight.is_contiguous() for one in tables)
            and type(norm) is LayerNorm and type(dropout) is Dropout
            and self.training and dropout.training and dropout.p < 1
            and norm.normalized_shape == (weights[0].shape[1],) and weights[0].shape[1] % VECTOR == 0
            and asks_nobody(*tables, norm, dropout) and trains_narrow(norm.weight, *weights, norm.weight, norm.bias)
        )  # fmt: skip


class EmbeddingSumBehindPadding(EmbeddingSum):
    """Beside a class whose program is RoBERTa's (Liu et al. 2019): positions are counted behind those of padding."""

    padding_idx: int
    create_position_ids_from_input_ids: Callable[[Tensor, int, int], Tensor]

    def forward(
        self, input_ids: Tensor | None = None, token_type_ids: Tensor | None = None, position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None, past_key_values_length: int = 0,
    ) -> Tensor:  # fmt: skip
        """As BERT's."""
        if position_ids is None and input_ids is not None:
            position_ids = self.create_position_ids_from_input_ids(input_ids, self.padding_idx, past_key_values_length)
        return super().forward(input_ids, token_type_ids, position_ids, inputs_embeds, past_key_values_length)
