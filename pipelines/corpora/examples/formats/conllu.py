"""Sentences of CoNLL-U, the format of Universal Dependencies (https://universaldependencies.org/format.html).

# text = Vámonos.
1-2     Vámonos  _     _     _  _  _  _      _  SpaceAfter=No
1       Vamos    ir    VERB  _  _  0  root   _  _
2       nos      nos   PRON  _  _  1  obj    _  _
2.1     ...      an empty node: only the enhanced graph has it
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pipelines.task_families import Problem

FIELDS = ("sentence", "words", "lemmas", "tags", "heads", "relations")
"""Fields of a sentence; `tags` are universal parts of speech."""

_COLUMNS = 10
_ID = re.compile(r"(?P<word>[0-9]+)|(?P<first>[0-9]+)-(?P<last>[0-9]+)|[0-9]+\.[0-9]+")


def read(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, dict[str, Any] | Problem]]:
    """Parse the sentences of numbered lines, each with the number of its first line."""
    block: list[str] = []
    first = 0
    for number, line in lines:
        line = line.rstrip("\r\n")
        if line.strip():
            first = first if block else number
            block.append(line)
        elif block:
            yield str(first), _sentence(block, first)
            block = []
    if block:
        yield str(first), _sentence(block, first)


def _sentence(lines: Sequence[str], first: int) -> dict[str, Any] | Problem:
    words: list[list[str]] = []
    surface: list[str] = []
    comments: dict[str, str] = {}
    covered = 0
    """Last word of the preceding range; the surface form is that of the range."""
    for number, line in enumerate(lines, first):
        if line.startswith("#"):
            key, _, value = line[1:].partition("=")
            comments[key.strip()] = value.strip()
            continue
        row = line.split("\t")
        if len(row) != _COLUMNS:
            message = f"line {number} has {len(row)} columns separated by tabs, expected {_COLUMNS}"
            return Problem("a line has not 10 columns", message)
        token_id = _ID.fullmatch(row[0])
        expected = token_id and (
            int(token_id["word"] or token_id["first"] or len(words) + 1),
            int(token_id["last"] or len(words) + 1),
        )
        if not token_id or expected is None or expected[0] != len(words) + 1 or expected[1] < expected[0]:
            message = f"line {number}: the column ID holds {row[0]!r} after word {len(words)}"
            return Problem("a column ID is out of order", message)
        if token_id["last"]:
            covered = expected[1]
        elif token_id["word"]:
            if not re.fullmatch(r"[0-9]+", row[6]):
                return Problem("a column HEAD is no number", f"line {number}: the column HEAD holds {row[6]!r}")
            words.append(row)
        if token_id["last"] or (token_id["word"] and len(words) > covered):
            surface.append(row[1] if "SpaceAfter=No" in row[9] else f"{row[1]} ")
    if covered > len(words):
        message = f"line {first}: a range of the column ID ends at {covered}, the sentence at word {len(words)}"
        return Problem("a column ID is out of order", message)
    return {
        "sentence": comments.get("text") or "".join(surface).strip(),
        "words": [row[1] for row in words],
        "lemmas": [row[2] for row in words],
        "tags": [row[3] for row in words],
        "heads": [int(row[6]) for row in words],
        "relations": [row[7] for row in words],
    } | ({"id": comments["sent_id"]} if "sent_id" in comments else {})
