"""Texts as rows of token ids, with the special tokens of their tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError, RecipeError
from pipelines.task_families import Row
from pipelines.task_families.columns import Columns, lengths_of
from pipelines.task_families.encoding import FieldArrays, attention_masks, pad_rows
from pipelines.task_families.excerpt import number_of
from pipelines.vocabulary import Channel, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerFast

    from pipelines.task_families.tokenized import RowTexts


@dataclass(frozen=True)
class TokenRows:
    """Rows of token ids of different lengths, not yet padded."""

    ids: Sequence[NDArray[np.int64]]
    types: Sequence[NDArray[np.int64]] | None
    """Token types of each row; None if the tokenizer does not use them."""
    padding: int
    """Id of the padding token."""
    channels: Mapping[Channel, Sequence[NDArray[Any]]] = field(default_factory=dict)
    """Values [length, *shape] of each channel alongside the tokens of each row."""

    @classmethod
    def of(
        cls, encodings: Sequence[Any], tokenizer: PreTrainedTokenizerFast, texts: RowTexts | None = None
    ) -> TokenRows:
        """The rows of `encodings` of the tokenizers library, with the channels of their `texts`.

        Raises DataError naming the example for one that cannot be annotated.
        """
        types = None
        if Field.TOKEN_TYPE_IDS in tokenizer.model_input_names:
            types = [np.asarray(encoding.type_ids, dtype=np.int64) for encoding in encodings]
        ids = [np.asarray(encoding.ids, dtype=np.int64) for encoding in encodings]
        values = {} if texts is None or not texts.annotations else texts.values(encodings)
        channels = {channel: values[channel.name] for channel in (texts.channels if texts is not None else ())}
        return cls(ids, types, int(tokenizer.pad_token_id), channels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [rows]: number of tokens of each row."""
        return lengths_of(self.ids)

    def columns(self, prefix: str = "") -> Columns:
        """What the rows are made of, by names that begin with `prefix`."""
        types = {} if self.types is None else {f"{prefix}types": self.types}
        channels = {f"{prefix}channel {channel.name}": values for channel, values in self.channels.items()}
        return {f"{prefix}ids": self.ids, **types, **channels}

    def with_columns(self, columns: Columns, prefix: str = "") -> TokenRows:
        """Other rows of the same tokenizer, made of `columns`."""
        types = None if self.types is None else columns[f"{prefix}types"]
        channels = {channel: columns[f"{prefix}channel {channel.name}"] for channel in self.channels}
        return replace(self, ids=columns[f"{prefix}ids"], types=types, channels=channels)

    def batch(self, chosen: Sequence[int]) -> FieldArrays:
        """The rows `chosen`, padded to the longest of them."""
        rows = [self.ids[index] for index in chosen]
        ids = pad_rows(rows, self.padding)
        fields: FieldArrays = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: attention_masks(rows, ids.shape[1])}
        if self.types is not None:
            fields[Field.TOKEN_TYPE_IDS] = pad_rows([self.types[index] for index in chosen], 0)
        for channel, values in self.channels.items():
            fields[channel.field] = pad_rows([values[index] for index in chosen], channel.padding)
        return fields


def token_rows(
    texts: Sequence[str] | Sequence[tuple[str, str]],
    tokenizer: PreTrainedTokenizerFast,
    length: int,
    *,
    keep_end: bool = False,
    sources: RowTexts | None = None,
) -> TokenRows:
    """`texts`, or pairs of them, as rows of at most `length` tokens, with the channels that `sources` annotate.

    The longer text of a pair is truncated first, at its end, or at its beginning with `keep_end`. Raises RecipeError
    when `length` has no room besides special tokens.
    """
    fast = tokenizer.backend_tokenizer
    pairs = bool(texts) and not isinstance(texts[0], str)
    frame = fast.num_special_tokens_to_add(pairs)
    if length <= frame:
        raise RecipeError(f"budget.length: {length} tokens have no room besides {frame} special tokens; raise it")
    fast.no_padding()
    fast.enable_truncation(length, strategy="longest_first", direction="left" if keep_end else "right")
    # only the slower method computes the characters of each token
    annotated = sources is not None and bool(sources.annotations)
    encodings = (fast.encode_batch if annotated else fast.encode_batch_fast)(list(texts))
    fast.no_truncation()
    return TokenRows.of(encodings, tokenizer, sources)


def column(examples: Sequence[Row], name: str) -> list[Any]:
    """The values of one column. Raises DataError naming the first example that lacks it."""
    values = [example.get(name) for example in examples]
    if None in values:
        raise DataError(f"example {number_of(examples, values.index(None))}: the column {name!r} is missing or empty")
    return values


def refuse_empty(rows: TokenRows, examples: Sequence[Row], numbers: Sequence[int]) -> None:
    """Raise DataError naming the first of `examples` whose row has no tokens; `numbers` is the example of each row."""
    empty = np.flatnonzero(rows.lengths == 0)
    if len(empty):
        raise DataError(f"example {number_of(examples, numbers[empty[0]])}: its text has no tokens; leave it out")
