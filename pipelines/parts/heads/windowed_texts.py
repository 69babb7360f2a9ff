"""Base class of heads that classify texts longer than a row, window by window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.heads import Batch
from pipelines.parts.heads.class_labels import class_labels
from pipelines.parts.heads.class_scores import ClassScoresHead
from pipelines.parts.heads.row_groups import RowGroups
from pipelines.parts.heads.token_rows import TokenRows, column, refuse_empty
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples

WINDOWS = Field.of_rows("windows")
"""int64 [B, K]: 1 for a window of a text, 0 for padding up to the text with the most windows."""


class WindowedTextHead(ClassScoresHead):
    """Class scores of a text from all of it: windows of `budget.length` tokens, each read by itself.

    The rows of a text are adjacent, one for each window. A text of more than `windows` windows is cut there.
    """

    needs = ClassScoresHead.needs | {WINDOWS}
    reads = frozenset({"text_classification"})

    windows: int = Option(8, ge=1)
    """Most windows of a text."""
    overlap: int = Option(0, ge=0)
    """Number of tokens that a window shares with the one before it."""
    pooling: Literal["cls", "mean", "last"] = "mean"
    """The vector of a window: the top state of its first token, the mean over its tokens, or the state of its last."""

    def _network(self, config: PretrainedConfig, task: Task | None, combined: str, reader: int = 0) -> PreTrainedModel:
        """A backbone of `config` whose windows are `combined`; `reader` is the width of an LSTM that does so."""
        from pipelines.networks.windowed_classifier import WindowedClassifier

        config.windows_pooling, config.windows_combined, config.windows_reader = self.pooling, combined, reader
        self._name_classes(config, task)
        return WindowedClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        _, signals = self._read(network, batch, requested, windows=batch[WINDOWS])
        return signals

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
        return RowGroups(examples, rows, counts, WINDOWS, class_labels(examples, task) if answers else None)
