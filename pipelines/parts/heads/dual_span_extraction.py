"""Extractive question answering beside a translation (Cui et al. 2019, Dual BERT)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.heads import Batch
from pipelines.parts.heads.context_windows import EncodedContexts
from pipelines.parts.heads.span_extraction import SpanExtractionHead
from pipelines.parts.heads.token_rows import TokenRows, column, token_rows
from pipelines.task_families.excerpt import number_of
from pipelines.vocabulary import Ability, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.columns import Columns
    from pipelines.task_families.encoding import EncodedExamples, FieldArrays

SOURCE_IDS = Field.of_rows("translation_ids")
"""int64 [B, S]: tokens of the translated question and context."""
SOURCE_MASK = Field.of_rows("translation_mask")
"""int64 [B, S]: 1 for the tokens of a translation, 0 for padding."""
SOURCE_TYPES = Field.of_rows("translation_types")
"""int64 [B, S]: 0 for the translated question, 1 for the context; only where the tokenizer has types."""
SOURCES = ("source_question", "source_context")


class DualSpanExtractionHead(SpanExtractionHead, name="dual_span_extraction"):
    """As `span_extraction`, while each token also reads the translation of the whole row.

    The translation is one row of `length` tokens, whatever the window of the context; of a longer one the end of its
    context is not read.
    """

    paper = "arXiv:1909.00361"
    needs = SpanExtractionHead.needs | {SOURCE_IDS, SOURCE_MASK}
    may_read = SpanExtractionHead.may_read | {SOURCE_TYPES}
    needs_abilities = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK})
    reads = frozenset({"translated_spans"})
    annotates: ClassVar[bool] = False

    translation: bool = True
    """Whether the translation is read; without, the head is `span_extraction`."""

    def _network(self, config: PretrainedConfig) -> PreTrainedModel:
        from pipelines.networks.dual_span_extractor import DualSpanExtractor

        return DualSpanExtractor(config) if self.translation else super()._network(config)

    def _inputs(self, batch: Batch, network: PreTrainedModel) -> dict[str, Any]:
        inputs = super()._inputs(batch, network)
        if self.translation:
            inputs |= {"source_ids": batch[SOURCE_IDS], "source_mask": batch[SOURCE_MASK]}
            if SOURCE_TYPES in batch:
                inputs["source_types"] = batch[SOURCE_TYPES]
        return inputs

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        questions, contexts = (column(examples, name) for name in SOURCES)
        for index, example in enumerate(examples):
            for name in SOURCES:
                if not example[name].strip():
                    raise DataError(f"example {number_of(examples, index)}: the column {name!r} is empty")
        encoded = super().encode(examples, task, tokenizer, length, answers=answers)
        assert isinstance(encoded, EncodedContexts)
        return TranslatedContexts(encoded, token_rows([*zip(questions, contexts, strict=True)], tokenizer, length))


class TranslatedContexts(EncodedContexts):
    """Encoded questions with contexts, and one row for the translation of each example."""

    def __init__(self, encoded: EncodedContexts, sources: TokenRows) -> None:
        windows = encoded._answerable, encoded._characters
        super().__init__(encoded.examples, encoded._rows, windows, encoded.owners, encoded._spans)
        self._sources = sources
        self.lengths = encoded.lengths + sources.lengths[encoded.owners]

    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        fields = super().collate(chosen)
        source = self._sources.batch(self.owners[chosen].tolist())
        fields[SOURCE_IDS], fields[SOURCE_MASK] = source[Field.INPUT_IDS], source[Field.ATTENTION_MASK]
        if Field.TOKEN_TYPE_IDS in source:
            fields[SOURCE_TYPES] = source[Field.TOKEN_TYPE_IDS]
        return fields

    def columns(self) -> Columns:
        return {**super().columns(), **self._sources.columns("translation ")}

    def with_columns(self, examples: Sequence[Row], columns: Columns) -> TranslatedContexts:
        sources = self._sources.with_columns(columns, "translation ")
        return TranslatedContexts(super().with_columns(examples, columns), sources)
