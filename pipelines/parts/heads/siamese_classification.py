"""Classification of pairs whose texts are read apart, and of texts by the same vectors (Conneau et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field as Option

from pipelines.parts.heads import Batch
from pipelines.parts.heads.class_labels import class_labels
from pipelines.parts.heads.class_scores import ClassScoresHead
from pipelines.parts.heads.pooled_text import PAIR, EncodedTexts, is_pair
from pipelines.parts.heads.token_rows import column, refuse_empty, token_rows
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples


class SiameseClassificationHead(ClassScoresHead, name="siamese_classification"):
    """Class scores of a pair from the vectors of its texts, [u, v, |u − v|, u · v], or of a text from its vector.

    The encoder never sees both texts of a pair at once, so that what it learns from pairs is a vector of a single text.
    The rows of a pair are adjacent; each text may have `length` tokens.
    """

    paper = "arXiv:1705.02364"
    reads = frozenset({"pair_classification", "text_classification"})
    annotates = True

    pooling: Literal["max", "mean", "last"] = "max"
    """Vector of a text: for each element of the top states the largest over the tokens (§3.2.2), their mean, or the
    state of the last token."""
    hidden: int | None = Option(None, ge=1)
    """Width of a tanh layer below the scores (§3.3: 512); no layer if null."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.siamese import SiameseNetwork

        config.siamese_pooling, config.siamese_hidden = self.pooling, self.hidden
        config.siamese_texts = 2 if task is not None and is_pair(task) else 1
        self._name_classes(config, task)
        return SiameseNetwork(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        _, signals = self._read(network, batch, requested)
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
        names = PAIR if is_pair(task) else ("text",)
        each = [column(examples, name) for name in names]
        texts: list[str] = [text for together in zip(*each, strict=True) for text in together]
        numbers = np.repeat(np.arange(len(examples)), len(names)).tolist()
        columns = [(name,) for name in names] * len(examples)
        sources = RowTexts.of(task.annotations, examples, numbers, [(text,) for text in texts], columns)
        rows = token_rows(texts, tokenizer, length, sources=sources)
        refuse_empty(rows, examples, numbers)
        encoded = EncodedTexts(examples, rows, len(names))
        if answers:
            encoded.values[Field.LABELS] = class_labels(examples, task)
        return encoded
