"""Questions about a table of the parameters of a function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from pipelines.corpora.documentation.exercises import LISTED, DocumentedEntry, EntryExamples, Exercise

FEWEST = 3
"""Minimum parameters in a table."""
LONGEST_TYPE = 30
"""Maximum characters of a type; the rest is cut off."""
HEADER = ["name", "type", "optional", "words"]


class _Parameter(NamedTuple):
    name: str
    type: str
    is_optional: bool
    words: int
    """Number of words in the description."""


class ParameterTables(Exercise, name="parameter_tables"):
    """One question of each kind: a cell of a row, the cells with a property, the largest or smallest number, a count,
    and a sum or an average. Operators are in no column: they have to be learned from the answers."""

    columns: ClassVar[Mapping[str, str]] = {
        "question": "string",
        "table_id": "string",
        "header": "list<string>",
        "rows": "list<list<string>>",
        "answers": "list<string>",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in entries:
            parameters = _parameters(entry)
            if len(parameters) < FEWEST:
                continue
            rows = [[one.name, one.type, _yes(one.is_optional), str(one.words)] for one in parameters]
            for question, answers in _questions(entry, parameters):
                yield (
                    entry,
                    {
                        "question": question,
                        "table_id": entry.source,
                        "header": HEADER,
                        "rows": rows,
                        "answers": answers,
                    },
                )


def _parameters(entry: DocumentedEntry) -> list[_Parameter]:
    """The first parameters of a function, one for each name."""
    result = []
    for parameter in entry.parts.parameters:
        kind, *rest = parameter.type.split(", optional")
        for name in parameter.names:
            result.append(_Parameter(name, kind[:LONGEST_TYPE].strip(), bool(rest), len(parameter.description.split())))
    return result[:LISTED]


def _yes(is_true: bool) -> str:
    return "yes" if is_true else "no"


def _questions(entry: DocumentedEntry, parameters: Sequence[_Parameter]) -> Iterator[tuple[str, list[str]]]:
    """Questions about the table of `parameters` with their answers."""
    one = entry.from_drawn("row", parameters)[0]
    about_type = entry.draw("column", 2) == 0
    yield (
        (f"What is the type of {one.name}?", [one.type])
        if about_type
        else (f"How many words describe {one.name}?", [str(one.words)])
    )
    optional = [parameter for parameter in parameters if parameter.is_optional]
    required = [parameter for parameter in parameters if not parameter.is_optional]
    chosen, kind = (optional, "optional") if entry.draw("property", 2) == 0 else (required, "required")
    if chosen:
        yield f"Which parameters are {kind}?", [parameter.name for parameter in chosen]
    most = entry.draw("extreme", 2) == 0
    numbers = [parameter.words for parameter in parameters]
    extreme = (max if most else min)(numbers)
    if numbers.count(extreme) == 1:
        name = parameters[numbers.index(extreme)].name
        yield f"Which parameter has the {'most' if most else 'fewest'} words?", [name]
    yield f"How many parameters are {kind}?", [str(len(chosen))]
    if entry.draw("computed", 2) == 0:
        yield "How many words describe all parameters?", [str(sum(numbers))]
    else:
        average = sum(numbers) / len(numbers)
        yield "How many words describe a parameter on average?", [format(average, ".10g")]
