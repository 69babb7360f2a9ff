"""Sessions at Python's prompt in documentation, as dialogues: a user enters code, the system answers.

>>> 1 + 1          user: 1 + 1
2                  system: 2
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.task_families.dialogues import SYSTEM, USER, dialogue

LONGEST_OUTPUT = 6
"""Lines of an output that are kept."""
FEWEST = 2
"""Fewest responses of a session."""
_PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.)(?: (?P<code>.*))?$")
_OPTIONS = re.compile(r"\s*#\s*(?:doctest:.*|may vary|random)\s*$")

Turn = tuple[str, str]
"""Mark of the speaker, and what is said."""


def turns_of(text: str) -> list[Turn]:
    """The turns of all sessions in `text`, in order: code and outputs in one line each.

    Lines of code without an output between them are one turn. An output ends at a blank line, as in doctest.
    """
    code, output, turns = list[str](), list[str](), list[Turn]()
    in_session = False
    for line in [*text.split("\n"), ""]:
        prompt = _PROMPT.match(line)
        if prompt is None and in_session and line.strip():
            output.append(line.strip())
            continue
        if output:
            turns += [(USER, _joined(code)), (SYSTEM, _joined(output[:LONGEST_OUTPUT]))]
            code, output = [], []
        in_session = prompt is not None
        if prompt is not None and (entered := _OPTIONS.sub("", prompt["code"] or "").strip()):
            code.append(entered)
    return [turn for turn in turns if turn[1]]


def sessions(text: str) -> Iterator[str]:
    """The session of a documentation string as a dialogue, if it has responses enough."""
    turns = turns_of(text)
    if sum(role == SYSTEM for role, _ in turns) >= FEWEST:
        yield dialogue(turns)


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
