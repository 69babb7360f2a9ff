"""Multi-label classification by pairs: for each label a second text asks whether it belongs to the first (Sun et al.
2019, arXiv:1903.09588, §2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import Field as Option
from pydantic import field_validator

from pipelines.parts.heads import Batch, Head, Signals, backbone_inputs
from pipelines.parts.heads.label_sets import LABEL_SET_LOGITS, LABEL_SETS, LabelSetsHead
from pipelines.parts.heads.pooled_text import EncodedTexts
from pipelines.parts.heads.token_rows import column, refuse_empty, token_rows
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

    from pipelines.task_families import Answer, Row, Task
    from pipelines.task_families.encoding import EncodedExamples

PLACEHOLDER = "{label}"
"""Where a question has its label."""


class LabelQuestionsHead(Head, name="label_questions"):
    """An independent probability of each label, of the pair of the text and a question about the label.

    The rows of a text are adjacent, one for each label, so that a text costs as many rows as there are labels. One
    linear function serves all of them: what tells labels apart is their words. Answers are those of the head
    `label_sets`.
    """

    paper = "arXiv:1903.09588"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    provides = frozenset({LABEL_SET_LOGITS})
    needs_abilities = frozenset({Ability.ONE_STACK})
    reads = frozenset({"label_sets"})
    labels = frozenset({LABEL_SETS})
    answers_from: ClassVar[frozenset[Signal]] = frozenset({LABEL_SET_LOGITS})
    annotates = True

    question: str = PLACEHOLDER
    """The second text, in which {label} stands for the label; by default the label alone (the paper's NLI form)."""
    pooling: Literal["cls", "mean", "last"] = "mean"
    """The vector of a pair: the top state of its first token, the mean over its tokens, or the state of its last."""
    ranked: int = Option(LabelSetsHead().ranked, ge=LabelSetsHead().ranked)
    """Number of labels in an answer, if no more of them are predicted."""

    @field_validator("question")
    @classmethod
    def _about_a_label(cls, question: str) -> str:
        if PLACEHOLDER not in question:
            raise ValueError(
                f"the question {question!r} is the same for all labels: write {PLACEHOLDER} where the label is"
            )
        return question

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.sequence_classifier import SequenceClassifier

        config.classifier_pooling, config.classifier_hidden, config.classifier_orders = self.pooling, None, 1
        config.id2label, config.label2id = {0: "label"}, {"label": 0}
        config.label_questions = len(task.labels) if task else 1
        return SequenceClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        logits = network(**backbone_inputs(batch, network)).logits
        return {LABEL_SET_LOGITS: logits.view(-1, network.config.label_questions)}

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        texts = column(examples, "text")
        questions = [self.question.replace(PLACEHOLDER, label) for label in task.labels]
        pairs = [(text, question) for text in texts for question in questions]
        numbers = np.repeat(np.arange(len(texts)), len(questions)).tolist()
        # no column holds the question
        sources = RowTexts.of(task.annotations, examples, numbers, pairs, [("text", "")] * len(pairs))
        rows = token_rows(pairs, tokenizer, length, sources=sources)
        refuse_empty(rows, examples, numbers)
        encoded = EncodedTexts(examples, rows, len(questions))
        if answers:
            single = LabelSetsHead().encode(examples, task, tokenizer, length)
            assert isinstance(single, EncodedTexts)
            encoded.values[LABEL_SETS] = single.values[LABEL_SETS]
        return encoded

    def answer(
        self,
        network: PreTrainedModel,
        encoded: EncodedExamples,
        outputs: Iterable[tuple[NDArray[np.int64], Batch, Signals]],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
    ) -> list[Answer]:
        return LabelSetsHead(ranked=self.ranked).answer(network, encoded, outputs, task, tokenizer)
