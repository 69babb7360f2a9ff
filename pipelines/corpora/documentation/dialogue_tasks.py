"""Labelled examples from sessions at Python's prompt: what is a session about, and what does the system answer?

- text, label: the whole session, and the subpackage that it uses.
- context, question, choices, answer: a session up to an answer, and four answers of sessions of one subpackage.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pipelines.corpora.documentation.hashed_draws import hashed_draw
from pipelines.corpora.documentation.sessions import FEWEST, Turn, turns_of
from pipelines.corpora.examples.files import Example
from pipelines.task_families.dialogues import SYSTEM, dialogue

CHOICES = 4
QUESTION = "What does the system answer?"
DocumentedRow = tuple[str, str, str, str]
"""Text, label, source and part of a documentation string."""


def session_rows(rows: Iterable[DocumentedRow]) -> Iterator[DocumentedRow]:
    """The rows that hold a session, with the session as their text."""
    for turns, (_, label, source, part) in _with_sessions(rows):
        yield dialogue(turns), label, source, part


def response_examples(rows: Iterable[DocumentedRow]) -> Iterator[tuple[Example, str, str]]:
    """An example of multiple choice for each session whose subpackage and part have enough other answers."""
    sessions = list(_with_sessions(rows))
    pools: dict[tuple[str, str], list[str]] = defaultdict(list)
    for turns, (_, label, _, part) in sessions:
        pools[part, label] += [text for role, text in turns if role == SYSTEM]
    for turns, (_, label, source, part) in sessions:
        answers = [index for index, (role, _) in enumerate(turns) if role == SYSTEM]
        index = answers[hashed_draw("response", source, len(answers))]
        own = turns[index][1]
        pool = pools[part, label]
        begin = hashed_draw("others", source, len(pool))
        others = list(dict.fromkeys(one for one in pool[begin:] + pool[:begin] if one != own))[: CHOICES - 1]
        if len(others) < CHOICES - 1:
            continue
        answer = hashed_draw("answer", source, CHOICES)
        choices = [*others[:answer], own, *others[answer:]]
        yield (
            {"context": dialogue(turns[:index]), "question": QUESTION, "choices": choices, "answer": answer},
            source,
            part,
        )


def _with_sessions(rows: Iterable[DocumentedRow]) -> Iterator[tuple[list[Turn], DocumentedRow]]:
    for row in rows:
        turns = turns_of(row[0])
        if sum(role == SYSTEM for role, _ in turns) >= FEWEST:
            yield turns, row
