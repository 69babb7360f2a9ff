"""BERT's embeddings (Devlin et al. 2019, fig. 2) as one function: the sum of three embeddings and of those of channels
(`pipelines.networks.channel_embeddings`), layer normalisation, dropout.

Computed one after the other, these operations write and read the states of a small network six times before its first
layer, and twice more for each channel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from pipelines.networks.channel_embeddings import tables_of
from pipelines.parts.accelerators.cpu_kernels.dropout import DropoutDraw, KernelDropout, draw_dropout
from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.embedding import KernelEmbedding, summed_rows
from pipelines.parts.accelerators.cpu_kernels.layer_norm import KernelLayerNorm
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
from pipelines.parts.accelerators.cpu_kernels.lookup_gradients import lookup_gradients

EMBEDDING_SUM = Kernel(
    "cursus_embedding_sum", POINTER, FLAG, *[POINTER] * 5, SIZE, SIZE, REAL, SEED, SHARE, REAL, FLAG, POINTER
)
EMBEDDING_SUM_BACKWARD = Kernel(
    "cursus_embedding_sum_backward", POINTER, FLAG, *[POINTER] * 6, SIZE, SIZE, SIZE, SEED, SHARE, REAL, FLAG
)
LOOKUPS = 16
"""Largest number of rows that the kernel sums for a token."""


class TableOptions(NamedTuple):
    """How the gradient of an embedding table is computed."""

    skipped: int | None
    """The row without a gradient (the padding)."""
    sparse_gradient: bool
    """Whether the gradient is sparse."""


class EmbeddingSumFunction(torch.autograd.Function):
    """`apply(gain [W], shift [W], epsilon, draw, shape, read, *tables, *ids)`: bfloat16 [B, L, W] with `shape` = (B,
    L).

    dropout(layer_norm(sum of the rows that `ids` select in `tables` [V, W])). The tables are float32, and one may occur
    several times; `read` holds the options of each. Each of `ids` is int64 [B, L]; the first three may be [1, L] or
    [1, 1], the same for all texts, or for all tokens.

    Raises IndexError for an id outside its table.
    """

    @staticmethod
    def forward(
        ctx: Any,
        gain: Tensor,
        shift: Tensor,
        epsilon: float,
        draw: DropoutDraw,
        shape: tuple[int, int],
        read: tuple[TableOptions, ...],
        *tables_and_ids: Tensor,
    ) -> Tensor:
        tables, ids = tables_and_ids[: len(read)], [one.contiguous() for one in tables_and_ids[len(read) :]]
        width, count = len(gain), shape[0] * shape[1]
        result = torch.empty(*shape, width, dtype=torch.bfloat16)
        moments, out_of_range = torch.empty(2, count), torch.empty((), dtype=torch.int64)
        lookups = _lookup_table(tables, ids)
        EMBEDDING_SUM(
            lookups.data_ptr(), len(tables), gain.data_ptr(), shift.data_ptr(), result.data_ptr(), moments.data_ptr(),
            moments[1].data_ptr(), count, width, epsilon, draw.seed, draw.dropped, draw.scale, torch.get_num_threads(),
            out_of_range.data_ptr(),
        )  # fmt: skip
        if out_of_range:
            raise IndexError(_out_of_range_message(tables, ids))
        ctx.save_for_backward(gain, moments, *tables, *ids)
        ctx.draw, ctx.read = draw, read
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        read: tuple[TableOptions, ...] = ctx.read
        gain, moments, *tables_and_ids = ctx.saved_tensors
        tables, ids = tables_and_ids[: len(read)], tables_and_ids[len(read) :]
        gradient, draw = outer[0].contiguous(), ctx.draw
        count, width = moments.shape[1], len(gain)
        to_sums, parts = torch.empty(gradient.shape), torch.empty(2, PARTS, width)
        lookups = _lookup_table(tables, ids)
        EMBEDDING_SUM_BACKWARD(
            lookups.data_ptr(), len(tables), gradient.data_ptr(), gain.data_ptr(), moments.data_ptr(),
            moments[1].data_ptr(), to_sums.data_ptr(), parts.data_ptr(), count, width, PARTS, draw.seed, draw.dropped,
            draw.scale, torch.get_num_threads(),
        )  # fmt: skip
        needs = ctx.needs_input_grad
        to_gain, to_shift = (parts[number].sum(0) if needs[number] else None for number in (0, 1))
        over_texts = to_sums.sum(0, keepdim=True)  # ids that all texts share have one row
        to_tables: list[Tensor | None] = [
            _table_gradient(over_texts if len(which) == 1 else to_sums, table, which, options) if needs[at] else None
            for at, (table, which, options) in enumerate(
                zip(tables[:OWN_TABLES], ids[:OWN_TABLES], read[:OWN_TABLES], strict=True), ARGUMENTS_BEFORE_TABLES
            )
        ]
        chosen = [at for at in range(OWN_TABLES, len(tables)) if needs[ARGUMENTS_BEFORE_TABLES + at]]
        to_tables += [None] * (len(tables) - OWN_TABLES)
        if chosen:
            further = lookup_gradients(
                to_sums.flatten(0, 1),
                [tables[at] for at in chosen],
                [ids[at].flatten() for at in chosen],
                [read[at].sparse_gradient for at in chosen],
            )
            for at, one in zip(chosen, further, strict=True):
                to_tables[at] = one
        return to_gain, to_shift, None, None, None, None, *to_tables, *[None] * len(ids)


ARGUMENTS_BEFORE_TABLES = 6
"""Arguments of `EmbeddingSumFunction` before its tables."""
OWN_TABLES = 3
"""Tables of words, types and positions, before those of channels."""


def _lookup_table(tables: Sequence[Tensor], ids: Sequence[Tensor]) -> Tensor:
    """int64 [tables, 4], as the kernel reads it: addresses of a table and its ids, number of rows, number of ids."""
    return torch.tensor(
        [(table.data_ptr(), one.data_ptr(), len(table), one.numel()) for table, one in zip(tables, ids, strict=True)]
    )


def _out_of_range_message(tables: Sequence[Tensor], ids: Sequence[Tensor]) -> str:
    """Error message for the first of `ids` that exceed their table."""
    ranges = [(int(one.min()), int(one.max()), len(table)) for table, one in zip(tables, ids, strict=True)]
    low, high, rows = next(one for one in ranges if one[0] < 0 or one[1] >= one[2])
    return f"index out of range: ids from {low} to {high}, in an embedding of {rows} rows"


def _table_gradient(gradient: Tensor, table: Tensor, ids: Tensor, options: TableOptions) -> Tensor:
    """The gradient of `table` [V, W], given the `gradient` [B, L, W] of the rows that `ids` [B, L or 1] select."""
    if ids.shape[1] < gradient.shape[1]:
        gradient = gradient.sum(1, keepdim=True)
    rows, which = gradient.flatten(0, 1), ids.flatten()
    if options.sparse_gradient:
        return summed_rows(which, rows, len(table), options.skipped)
    skipped = -1 if options.skipped is None else options.skipped
    of_table: Tensor = torch.ops.aten.embedding_dense_backward(rows, which, len(table), skipped, False)
    return of_table


class FusedEmbeddings(nn.Module):
    """Mixin before a transformers class with these children and the bytecode of BERT's embeddings."""

    word_embeddings: KernelEmbedding
    token_type_embeddings: KernelEmbedding
    position_embeddings: KernelEmbedding
    LayerNorm: nn.LayerNorm
    dropout: nn.Dropout
    position_ids: Tensor
    token_type_ids: Tensor
    """Zeros: the default type of each token."""

    def forward(
        self, input_ids: Tensor | None = None, token_type_ids: Tensor | None = None, position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None, past_key_values_length: int = 0,
    ) -> Tensor:  # fmt: skip
        """States [B, L, W] of `input_ids` [B, L] and, where given, `token_type_ids` and `position_ids` [B or 1, L]."""
        ids = self._ids(input_ids, token_type_ids, position_ids)
        modules = [self.word_embeddings, self.token_type_embeddings, self.position_embeddings]
        channels = tables_of(self.word_embeddings)
        if channels is not None and ids is not None:
            for table, values in channels.lookups():
                modules.append(cast("KernelEmbedding", table))
                ids.append(values.expand(ids[0].shape).long())
        if ids is None or inputs_embeds is not None or past_key_values_length or not self._can_fuse(modules, channels):
            output: Tensor = super().forward(
                input_ids, token_type_ids, position_ids, inputs_embeds, past_key_values_length
            )
            return output
        if channels is not None:
            channels.forget()
        norm = self.LayerNorm
        leaves = [one.row_gradient_leaf() for one in modules]
        tables = [one.weight if leaf is None else leaf for one, leaf in zip(modules, leaves, strict=True)]
        read = tuple(TableOptions(one.padding_idx, leaf is not None) for one, leaf in zip(modules, leaves, strict=True))
        result: Tensor = EmbeddingSumFunction.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            norm.weight, norm.bias, norm.eps, draw_dropout(self.dropout.p), tuple(ids[0].shape), read, *tables, *ids
        )  # fmt: skip
        return result

    def _ids(self, words: Tensor | None, kinds: Tensor | None, positions: Tensor | None) -> list[Tensor] | None:
        """Ids of words [B, L], types [B or 1, L] or [1, 1], and positions [B or 1, L], int64; None for unsupported
        shapes."""
        if words is None or words.ndim != 2:
            return None
        texts, length = words.shape
        positions = self.position_ids[:, :length] if positions is None else positions
        if any(one.shape not in ((texts, length), (1, length)) for one in (positions, kinds) if one is not None):
            return None
        kinds = self.token_type_ids[:1, :1] if kinds is None else kinds
        return [one.long() for one in (words, kinds, positions)]

    def _can_fuse(self, tables: Sequence[KernelEmbedding], channels: nn.Module | None) -> bool:
        """Whether the function may sum rows of `tables`, the first of words; it replaces the hook of `channels`."""
        norm, dropout = self.LayerNorm, self.dropout
        weights = [one.weight for one in tables]
        hooked = None if channels is None else tables[0]
        return (
            len(tables) <= LOOKUPS
            and all(type(one) is KernelEmbedding and one.is_plain and one.weight.is_contiguous() for one in tables)
            and type(norm) is KernelLayerNorm and type(dropout) is KernelDropout
            and self.training and dropout.training and dropout.p < 1
            and norm.normalized_shape == (weights[0].shape[1],) and weights[0].shape[1] % VECTOR == 0
            and has_no_hooks(*tables, norm, dropout, replaced=hooked)
            and trains_in_bfloat16(norm.weight, *weights, norm.weight, norm.bias)
        )  # fmt: skip


class FusedRobertaEmbeddings(FusedEmbeddings):
    """Mixin before a class with the bytecode of RoBERTa's embeddings (Liu et al.

    2019): positions start after the padding id.
    """

    padding_idx: int
    create_position_ids_from_input_ids: Callable[[Tensor, int, int], Tensor]

    def forward(
        self, input_ids: Tensor | None = None, token_type_ids: Tensor | None = None, position_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None, past_key_values_length: int = 0,
    ) -> Tensor:  # fmt: skip
        """States [B, L, W], as BERT's."""
        if position_ids is None and input_ids is not None:
            position_ids = self.create_position_ids_from_input_ids(input_ids, self.padding_idx, past_key_values_length)
        return super().forward(input_ids, token_type_ids, position_ids, inputs_embeds, past_key_values_length)
