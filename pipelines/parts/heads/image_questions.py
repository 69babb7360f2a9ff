"""Classification of questions about images, whose regions are words beside those of the question (Su et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines.errors import DataError
from pipelines.parts.heads.class_labels import class_labels
from pipelines.parts.heads.pooled_text import EncodedTexts
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.parts.heads.table_answers import encoded_words
from pipelines.parts.heads.token_rows import TokenRows, column
from pipelines.task_families.excerpt import number_of
from pipelines.task_families.tokenized import RowTexts
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.task_families import Row, Task
    from pipelines.task_families.encoding import EncodedExamples

QUESTION, REGIONS = "question", "regions"


class ImageQuestionsHead(SequenceClassificationHead, name="image_questions"):
    """Class scores of a question and the regions of an image, read as one row.

    A region is a word of the second segment. What it looks like, and where it is, are channels: the annotations
    `region_vectors` and `region_boxes`. Without them the words are read alone.
    """

    paper = "arXiv:1908.08530"
    reads = frozenset({"image_questions"})

    def encode(
        self,
        examples: Sequence[Row],
        task: Task,
        tokenizer: PreTrainedTokenizerFast,
        length: int,
        *,
        answers: bool = True,
    ) -> EncodedExamples:
        questions, regions = (column(examples, name) for name in (QUESTION, REGIONS))
        texts = [(question.split(), list(words)) for question, words in zip(questions, regions, strict=True)]
        for index, both in enumerate(texts):
            if not all(both):
                raise DataError(f"example {number_of(examples, index)}: it has no question or no regions; leave it out")
        names = [(QUESTION, REGIONS)] * len(examples)
        sources = RowTexts.of(task.annotations, examples, range(len(examples)), texts, names)
        rows = TokenRows.of(encoded_words(texts, tokenizer, length), tokenizer, sources)
        encoded = EncodedTexts(examples, rows, orders=1)
        if answers:
            encoded.values[Field.LABELS] = class_labels(examples, task)
        return encoded
