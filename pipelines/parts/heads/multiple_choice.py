"""Multiple choice: which of several texts answers a question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.heads import Batch, Signals
from pipelines.parts.heads.layer_signals import LAYERS
from pipelines.parts.heads.pooled_text import PooledTextHead, highest
from pipelines.parts.heads.row_groups import RowGroups
from pipelines.parts.heads.token_rows import column, refuse_empty, token_rows
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.tokenized import RowTexts
from pipelines.task_families.writing_systems import join_words
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples


class MultipleChoiceHead(PooledTextHead, name="multiple_choice"):
    """A score for each choice of a question, as in Radford et al. 2018, §3.3.

    Context and question are the first text of a pair, a choice is the second. The rows of a question are adjacent, one
    for each choice. A row that is too long is truncated at the beginning of its context.
    """

    paper = "Radford et al. 2018"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.CHOICES})
    provides = LAYERS | {Signal.LOGITS, Signal.POOLED, Signal.NEXT_LOGITS}
    reads = frozenset({"multiple_choice"})
    labels = frozenset({Field.LABELS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({Signal.LOGITS})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        return self._network(config, ("choice",))

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        outputs, signals = self._read(network, batch, requested)
        assert outputs.logits is not None
        choices = batch[Field.CHOICES]
        scores = outputs.logits.view(choices.shape).masked_fill(choices == 0, float("-inf"))
        return signals | {Signal.LOGITS: scores}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        all_choices = column(examples, "choices")
        pairs: list[tuple[str, str]] = []
        for index, (example, choices) in enumerate(zip(examples, all_choices, strict=True)):
            if len(choices) < 2:
                example_number = number_of(examples, index)
                raise DataError(
                    f"example {example_number}: its column 'choices' holds {len(choices)}, expected two or more"
                )
            prompt = join_words([part for name in ("context", "question") if (part := example.get(name))])
            pairs += [(prompt, choice) for choice in choices]
        counts = np.asarray([len(choices) for choices in all_choices], dtype=np.int64)
        numbers = np.repeat(np.arange(len(examples)), counts).tolist()
        # no column holds the prompt
        sources = RowTexts.of(task.annotations, examples, numbers, pairs, [("", "choices")] * len(pairs))
        rows = token_rows(pairs, tokenizer, length, keep_end=True, sources=sources)
        refuse_empty(rows, examples, numbers)
        return RowGroups(examples, rows, counts, Field.CHOICES, _answers(examples, counts) if answers else None)

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        return [int(index) for index in highest(encoded, outputs)]


def _answers(examples: Sequence[Row], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    for index, (answer, count) in enumerate(zip(column(examples, "answer"), counts, strict=True)):
        if not 0 <= answer < count:
            raise DataError(
                f"example {number_of(examples, index)}: its answer {answer!r} is not the index of one of its {count} "
                "choices, from 0"
            )
    return np.asarray([example["answer"] for example in examples], dtype=np.int64)
