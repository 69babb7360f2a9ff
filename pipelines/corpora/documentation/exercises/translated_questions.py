"""What is the type of a parameter, in another language beside the English?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise
from pipelines.corpora.documentation.exercises.parameter_questions import ParameterQuestions
from pipelines.corpora.documentation.transcription import transcribed


class TranslatedQuestions(Exercise, name="translated_questions"):
    """The questions of `parameter_questions` in Georgian letters; the English ones are their translation."""

    columns: ClassVar[Mapping[str, str]] = {
        "context": "string",
        "question": "string",
        "answer_texts": "list<string>",
        "answer_starts": "list<int64>",
        "source_context": "string",
        "source_question": "string",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry, example in ParameterQuestions().examples(entries):
            yield (
                entry,
                {
                    "context": transcribed(example["context"]),
                    "question": transcribed(example["question"]),
                    "answer_texts": [transcribed(text) for text in example["answer_texts"]],
                    "answer_starts": example["answer_starts"],
                    "source_context": example["context"],
                    "source_question": example["question"],
                },
            )
