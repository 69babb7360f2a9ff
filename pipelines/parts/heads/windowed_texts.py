"""Base class of heads that classify texts longer than a row, window by window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.class_labels import class_labels
from pipelines.parts.heads.layer_signals import LAYERS, NEED_ABILITIES, layer_signals
from pipelines.parts.heads.pooled_text import highest
from pipelines.parts.heads.token_rows import TokenRows, column, refuse_empty
from pipelines.task_families.encoding import EncodedExamples, FieldArrays
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.columns import Columns

WINDOWS = Field.of_rows("windows")
"""int64 [B, K]: 1 for a window of a text, 0 for padding up to the text with the most windows."""


class WindowedTextHead(Head):
    """Class scores of a text from all of it: windows of `budget.length` tokens, each read by itself.

    The rows of a text are adjacent, one for each window. A text of more than `windows` windows is cut there.
    """

    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, WINDOWS})
    provides = LAYERS | {Signal.LOGITS}
    needs_abilities = frozenset({Ability.ONE_STACK})
    needs_ability_for: ClassVar[Mapping[Signal, Ability]] = NEED_ABILITIES
    reads = frozenset({"text_classification"})
    labels = frozenset({Field.LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.LOGITS})

    windows: int = Option(8, ge=1)
    """Most windows of a text."""
    overlap: int = Option(0, ge=0)
    """Number of tokens that a window shares with the one before it."""
    pooling: Literal["cls", "mean", "last"] = "mean"
    """The vector of a window: the top state of its first token, the mean over its tokens, or the state of its last."""

    def _network(self, config: PretrainedConfig, task: Task | None, combined: str, reader: int = 0) -> PreTrainedModel:
        """A backbone of `config` whose windows are `combined`; `reader` is the width of an LSTM that does so."""
        from pipelines.networks.windowed_classifier import WindowedClassifier

        labels = task.labels if task else ()
        config.windows_pooling, config.windows_combined, config.windows_reader = self.pooling, combined, reader
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
        return WindowedClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs = network(
            **backbone_inputs(batch, network),
            windows=batch[WINDOWS],
            output_hidden_states=bool(LAYERS & requested),
        )
        return {Signal.LOGITS: outputs.logits, **layer_signals(network, outputs, requested)}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        fast = tokenizer.backend_tokenizer
        room = length - fast.num_special_tokens_to_add(False)
        if room <= self.overlap:
            raise RecipeError(
                f"budget.length: windows of {length} tokens have room for {max(room, 0)} of the text, and "
                f"{self.overlap} of them are those of the window before; raise it, or lower overlap"
            )
        fast.no_padding()
        fast.enable_truncation(length, stride=self.overlap)
        encodings = fast.encode_batch(column(examples, "text"))
        fast.no_truncation()
        windows = [[one, *one.overflowing][: self.windows] for one in encodings]
        counts = np.asarray([len(one) for one in windows], dtype=np.int64)
        rows = TokenRows.of([window for one in windows for window in one], tokenizer)
        refuse_empty(rows, examples, np.repeat(np.arange(len(examples)), counts).tolist())
        return EncodedWindows(examples, rows, counts, class_labels(examples, task) if answers else None)

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        return [task.labels[index] for index in highest(encoded, outputs)]


class EncodedWindows(EncodedExamples):
    """Encoded texts, each an item of one row or several."""

    def __init__(
        self, examples: Sequence[Row], rows: TokenRows, counts: NDArray[np.int64], labels: NDArray[np.int64] | None
    ) -> None:
        self.examples, self.owners = examples, np.arange(len(examples), dtype=np.int64)
        self._rows, self._counts, self._labels = rows, counts, labels
        self._firsts = np.cumsum(counts) - counts
        self.lengths = np.add.reduceat(rows.lengths, self._firsts) if len(examples) else self.owners

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """[B · K, L] rows, K the largest number of windows in the batch. Rows of missing windows have a single token,
        so that a mean over tokens is defined."""
        widest = int(self._counts[chosen].max())
        columns = np.arange(widest)
        exists = columns < self._counts[chosen][:, None]
        rows = self._firsts[chosen][:, None] + np.where(exists, columns, 0)
        fields = self._rows.batch(rows.ravel().tolist())
        fields[Field.ATTENTION_MASK][~exists.ravel(), 1:] = 0
        fields[WINDOWS] = exists.astype(np.int64)
        if self._labels is not None:
            fields[Field.LABELS] = self._labels[chosen]
        return fields

    def columns(self) -> Columns:
        labels: Columns = {} if self._labels is None else {"labels": self._labels}
        return {**self._rows.columns(), "counts": self._counts, **labels}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> EncodedWindows:
        rows = self._rows.with_columns(columns)
        return EncodedWindows(examples, rows, columns["counts"], columns.get("labels"))
