"""What is the type of a parameter?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pipelines.corpora.documentation.exercises import LISTED, DocumentedEntry, EntryExamples, Exercise, with_others


class ParameterQuestions(Exercise, name="parameter_questions"):
    """One question in four is about a parameter that is not in the list."""

    columns: ClassVar[Mapping[str, str]] = {
        "context": "string",
        "question": "string",
        "answer_texts": "list<string>",
        "answer_starts": "list<int64>",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        listed = [entry for entry in entries if entry.parts.parameters]
        for entry, others in with_others(listed, 1):
            context, starts = "", []
            for parameter in entry.parts.parameters[:LISTED]:
                lead = f"{', '.join(parameter.names)} : "
                starts.append(len(context) + len(lead))
                context += f"{lead}{parameter.type}\n    {parameter.first_sentence}\n"
            absent = sorted(others[0].parameter_names - entry.parameter_names)
            if absent and not entry.draw("absent", 4):
                name, answers, answer_starts = absent[entry.draw("name", len(absent))], [], []
            else:
                chosen = entry.draw("parameter", len(starts))
                parameter = entry.parts.parameters[chosen]
                name, answers, answer_starts = parameter.names[0], [parameter.type], [starts[chosen]]
            yield (
                entry,
                {
                    "context": context.strip("\n"),
                    "question": f"What is the type of the parameter {name}?",
                    "answer_texts": answers,
                    "answer_starts": answer_starts,
                },
            )
