"""Labelled examples of every task family from SciPy's documentation strings, so that each family runs without other
data.

By the columns of the family:

- text, label: which subpackage does this text document?
- text, labels: which kinds of parameters does the function take that this describes?
- text_a, text_b, label (text): does this summary belong to this description? Half of the summaries are of another
  function of the same subpackage.
- text_a, text_b, label (number): descriptions of two functions, and 5 times the Jaccard index of their parameters'
names.
- tokens, tags: entries of a list of parameters; their names and types are the entities.
- tokens, boxes, tags, page: a page with its headers, names, types and descriptions (`pages`).
- context, question, answers: what is the type of the parameter x? One question in four is about a parameter that is not
in the list.
- context, question, choices, answer: which of four summaries belongs to this description? All are from one subpackage.
- source, target: the summary for a description.

These are exercises with exact answers, not benchmarks. An example is in the part of its module, and so is everything
else that it uses. All random choices are derived from hashes of the sources.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.corpora.documentation.dialogue_tasks import response_examples, session_rows
from pipelines.corpora.documentation.docstrings import task_rows
from pipelines.corpora.documentation.hashed_draws import hashed_draw
from pipelines.corpora.documentation.numpydoc import DocumentedParameter, ParsedDocstring, parse_docstring
from pipelines.corpora.documentation.pages import pages
from pipelines.corpora.documentation.transcription import transcribed
from pipelines.corpora.examples.files import Example
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

MAX_DESCRIPTION = 1200
"""Maximum characters of a description; the rest is cut off."""
MIN_DESCRIPTION = 120
MIN_SUMMARY = 20
"""Minimum characters of a summary."""
CHOICES = 4
LISTED = 6
"""Maximum parameters in one list."""
SCALE = 5
"""Largest similarity, as in the semantic textual similarity benchmark."""

_KINDS = {
    "array": re.compile(r"array|matrix|matrices", re.IGNORECASE),
    "boolean": re.compile(r"\bbool|\b(?:True|False)\b"),
    "function": re.compile(r"\bcallable|\bfunction", re.IGNORECASE),
    "integer": re.compile(r"\bint\b|\binteger", re.IGNORECASE),
    "real number": re.compile(r"\bfloat|\bscalar|\breal\b", re.IGNORECASE),
    "sequence": re.compile(r"\btuple|\blist\b|\bsequence", re.IGNORECASE),
    "text": re.compile(r"\bstr(?:ing)?\b|['\"]\w+['\"]"),
}
"""Kind of a parameter → how its type is written."""
_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class _Entry:
    """One documentation string."""

    text: str
    label: str
    source: str
    part: str
    parts: ParsedDocstring

    @property
    def description(self) -> str:
        return self.parts.description[:MAX_DESCRIPTION].strip()

    def draw(self, purpose: str, below: int) -> int:
        """A pseudo-random number below `below`, derived from the purpose and the source."""
        return hashed_draw(purpose, self.source, below)


def documented_examples(task: DocumentationTask) -> Iterator[tuple[Example, str, str]]:
    """Examples with their sources and parts. DataError for a family of which this corpus has no examples."""
    rows = task_rows(task)
    if task.texts == "summaries":
        rows = _of_summaries(rows)
    is_choice = "choices" in task.family.columns
    if task.texts == "sessions" and not is_choice:
        rows = session_rows(rows)
    examples = response_examples(rows) if task.texts == "sessions" and is_choice else examples_of(rows, task.family)
    for example, source, part in examples:
        if part == "test" and task.tested_form == "transcribed":
            example = {**example, "text": transcribed(example["text"])}
        yield example, source, part


def texts_without_labels(task: DocumentationTask) -> Iterator[tuple[str, str]]:
    """Whole texts and their sources of the training part, where examples are summaries; nothing otherwise."""
    if task.texts == "summaries":
        yield from ((text, source) for text, _, source, part in task_rows(task) if part == "train")


def _of_summaries(rows: Iterable[tuple[str, str, str, str]]) -> Iterator[tuple[str, str, str, str]]:
    """Rows of the first paragraphs, in one line; an example needs words enough to have a subject."""
    for text, label, source, part in rows:
        summary = parse_docstring(text).summary
        if len(summary) >= MIN_SUMMARY:
            yield summary, label, source, part


def examples_of(rows: Iterable[tuple[str, str, str, str]], family: TaskFamily) -> Iterator[tuple[Example, str, str]]:
    """Examples of `family` from rows `text, label, source, part`. DataError as `documented_examples`."""
    make = _MAKERS.get(_columns(**family.columns))
    if make is None:
        raise DataError(f"the documentation holds no examples of {family.name}; set the files of the task")
    for entry, example in make([_Entry(*row, parse_docstring(row[0])) for row in rows]):
        yield example, entry.source, entry.part


EntryExamples = Iterator[tuple[_Entry, Example]]


def _classes(entries: Sequence[_Entry]) -> EntryExamples:
    for entry in entries:
        yield entry, {"text": entry.text, "label": entry.label}


def _label_sets(entries: Sequence[_Entry]) -> EntryExamples:
    for entry in _described(entries):
        written = " ".join(parameter.type for parameter in entry.parts.parameters)
        labels = [kind for kind, pattern in _KINDS.items() if pattern.search(written)]
        if entry.parts.parameters:
            yield entry, {"text": f"{entry.parts.summary}\n\n{entry.description}", "labels": labels}


def _pairs(entries: Sequence[_Entry]) -> EntryExamples:
    for entry, others in _with_others(_described(entries), 1):
        belongs = not entry.draw("belongs", 2)
        summary = entry.parts.summary if belongs else others[0].parts.summary
        yield entry, {"text_a": summary, "text_b": entry.description, "label": "same" if belongs else "other"}


def _similarities(entries: Sequence[_Entry]) -> EntryExamples:
    with_names = [entry for entry in _described(entries) if entry.parts.parameters]
    far = {entry.source: others for entry, others in _with_others(with_names, 1)}
    for entry, following in zip(with_names, [*with_names[1:], None], strict=True):
        # neighbours in a module often share parameters, other functions of the subpackage rarely do
        near = [following] if following and following.part == entry.part else []
        for other in near + far.get(entry.source, []):
            first, second = _names(entry), _names(other)
            score = SCALE * len(first & second) / len(first | second)
            yield entry, {"text_a": entry.description, "text_b": other.description, "label": round(score, 4)}


def _tagged(entries: Sequence[_Entry]) -> EntryExamples:
    for entry in entries:
        tokens: list[str] = []
        tags: list[str] = []
        for parameter in entry.parts.parameters[:LISTED]:
            for number, name in enumerate(parameter.names):
                _add(tokens, tags, ", " if number else "", None)
                _add(tokens, tags, name, "name")
            _add(tokens, tags, ":", None)
            _add(tokens, tags, parameter.type, "type")
            _add(tokens, tags, _first_sentence(parameter), None)
        if tokens:
            yield entry, {"tokens": tokens, "tags": tags}


def _laid_out(entries: Sequence[_Entry]) -> EntryExamples:
    for entry in entries:
        for page in pages(entry.text):
            if any(word.kind for word in page.words):
                yield entry, {"tokens": page.tokens, "boxes": page.boxes, "tags": page.tags, "page": page.size}


def _questions(entries: Sequence[_Entry]) -> EntryExamples:
    listed = [entry for entry in entries if entry.parts.parameters]
    for entry, others in _with_others(listed, 1):
        context, starts = "", []
        for parameter in entry.parts.parameters[:LISTED]:
            lead = f"{', '.join(parameter.names)} : "
            starts.append(len(context) + len(lead))
            context += f"{lead}{parameter.type}\n    {_first_sentence(parameter)}\n"
        absent = sorted(_names(others[0]) - _names(entry))
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


def _choices(entries: Sequence[_Entry]) -> EntryExamples:
    for entry, others in _with_others(_described(entries), CHOICES - 1):
        answer = entry.draw("answer", CHOICES)
        choices = [other.parts.summary for other in others]
        choices.insert(answer, entry.parts.summary)
        question = "Which summary belongs to this description?"
        yield entry, {"context": entry.description, "question": question, "choices": choices, "answer": answer}


def _summaries(entries: Sequence[_Entry]) -> EntryExamples:
    for entry in _described(entries):
        yield entry, {"source": entry.description, "target": entry.parts.summary}


def _described(entries: Sequence[_Entry]) -> list[_Entry]:
    """Entries with a summary and a description that does not repeat it."""
    return [
        entry
        for entry in entries
        if entry.parts.summary
        and len(entry.description) >= MIN_DESCRIPTION
        and entry.parts.summary not in entry.description
    ]


def _with_others(entries: Sequence[_Entry], count: int) -> Iterator[tuple[_Entry, list[_Entry]]]:
    """Entries with `count` others of the same part and subpackage whose summaries differ; entries without enough are
    omitted."""
    near: dict[tuple[str, str], list[_Entry]] = defaultdict(list)
    for entry in entries:
        near[entry.part, entry.label].append(entry)
    for entry in entries:
        pool = near[entry.part, entry.label]
        begin = entry.draw("others", len(pool))
        chosen: dict[str, _Entry] = {}
        for other in pool[begin:] + pool[:begin]:
            if len(chosen) < count and other.parts.summary != entry.parts.summary:
                chosen.setdefault(other.parts.summary, other)
        if len(chosen) == count:
            yield entry, list(chosen.values())


def _names(entry: _Entry) -> set[str]:
    return {name for parameter in entry.parts.parameters for name in parameter.names}


def _first_sentence(parameter: DocumentedParameter) -> str:
    return re.split(r"(?<=[.;:]) ", parameter.description, maxsplit=1)[0]


def _add(tokens: list[str], tags: list[str], text: str, kind: str | None) -> None:
    """Append the words of `text`, all in one entity or none."""
    words = _TOKEN.findall(text)
    tokens += words
    tags += ["O" if kind is None else f"{'I' if number else 'B'}-{kind}" for number in range(len(words))]


def _columns(**columns: str) -> frozenset[str]:
    return frozenset(f"{name} {kind}" for name, kind in columns.items())


_SPANS: dict[str, Any] = {"answer_texts": "list<string>", "answer_starts": "list<int64>"}
_MAKERS: dict[frozenset[str], Callable[[Sequence[_Entry]], EntryExamples]] = {
    _columns(text="string", label="string"): _classes,
    _columns(text="string", labels="list<string>"): _label_sets,
    _columns(text_a="string", text_b="string", label="string"): _pairs,
    _columns(text_a="string", text_b="string", label="double"): _similarities,
    _columns(tokens="list<string>", tags="list<string>"): _tagged,
    _columns(tokens="list<string>", boxes="list<list<int64>>", tags="list<string>", page="list<int64>"): _laid_out,
    _columns(context="string", question="string", **_SPANS): _questions,
    _columns(context="string", question="string", choices="list<string>", answer="int64"): _choices,
    _columns(source="string", target="string"): _summaries,
}
"""Columns of the family → maker of its examples."""
