"""Documentation strings as pages: words with their boxes, and the entities that NumPy's style marks by layout.

Parameters                           header
                                     (the rule below it is removed, its line stays empty)
x, y   array_like                    name, type (the colon between them is removed)
    What they are,                   ┐ description: the indented lines below a name
    where they are needed.           ┘

The kinds follow from line and column, as they do on a form; rules and colons, which would give them away in the text
alone, are removed. What remains in the text are the words themselves: "Parameters" is a header almost everywhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipelines.task_families.writing_systems import join_words

LINES = 32
"""Height of a page in lines."""
WIDTH = 80
"""Width of a page in characters; a page with a longer line is as wide as that line."""
FEWEST = 12
"""Fewest words of a page; what remains of a text on its last page may be less, and is left out."""

_HEADER = re.compile(r"[A-Z][\w ]*")
_RULE = re.compile(r"(-{3,}|={3,}) *")
_NAMES = r"[*\w]+(?:, *[*\w]+)*"
_ENTRY = re.compile(rf"(?P<names>{_NAMES})(?P<colon> : *)(?P<type>\S.*)")
_NAME = re.compile(_NAMES)
_WORD = re.compile(r"\S+")

_NAMED = frozenset({"Parameters", "Other Parameters", "Attributes", "Keyword Arguments"})
"""Sections in which a line without a colon is a name."""
_TYPED = frozenset({"Returns", "Yields", "Receives", "Raises", "Warns"})
"""Sections in which a line without a colon is a type."""


KINDS = 3
"""Most entities that begin on a line: a name, a type and their description."""


class Span(NamedTuple):
    """The characters of a line that belong to one entity, or to none."""

    begin: int
    end: int
    kind: str
    entity: int


class Word(NamedTuple):
    """One word of a text and its position."""

    text: str
    line: int
    column: int
    entity: int
    """Number of the entity that it belongs to; −1 for none."""
    kind: str
    """Kind of that entity; empty for none."""


@dataclass(frozen=True)
class Page:
    """Words in reading order."""

    words: Sequence[Word]

    @property
    def tokens(self) -> list[str]:
        return [word.text for word in self.words]

    @property
    def text(self) -> str:
        return join_words(self.tokens)

    @property
    def size(self) -> list[int]:
        """Width and height, in characters and lines."""
        return [max(WIDTH, *(word.column + len(word.text) for word in self.words)), LINES]

    @property
    def boxes(self) -> list[list[int]]:
        """x0, y0, x1, y1 of each word, in characters and lines from the upper left corner."""
        return [
            [word.column, word.line % LINES, word.column + len(word.text), word.line % LINES + 1] for word in self.words
        ]

    @property
    def tags(self) -> list[str]:
        """The entities in IOB2; what is left of an entity that began on the page before begins anew."""
        before = [-1, *(word.entity for word in self.words)]
        return [
            "O" if word.entity < 0 else f"{'I' if word.entity == last else 'B'}-{word.kind}"
            for word, last in zip(self.words, before, strict=False)
        ]

    def columns(self) -> Mapping[str, Any]:
        """Values of the columns of a corpus of pages, besides the text."""
        return {"tokens": self.tokens, "boxes": self.boxes, "page": self.size}


def pages(text: str) -> Iterator[Page]:
    """The pages of a documentation string, LINES lines each.

    Pages of fewer than FEWEST words are left out, and pages with a character that normalisation would replace by
    several words.
    """
    sheets: dict[int, list[Word]] = {}
    for word in laid_out_words(text):
        sheets.setdefault(word.line // LINES, []).append(word)
    for words in sheets.values():
        if len(words) >= FEWEST and not any(_splits(word.text) for word in words):
            yield Page(words)


def laid_out_words(text: str) -> Iterator[Word]:
    """The words of a documentation string with their positions and entities."""
    lines = text.expandtabs().split("\n")
    section, described = "", -1
    for number, (line, after) in enumerate(zip(lines, [*lines[1:], ""], strict=True)):
        if number and _RULE.fullmatch(line) and _HEADER.fullmatch(lines[number - 1].rstrip()):
            continue
        if line[:1].isspace():
            span = Span(0, len(line), "description" if described >= 0 else "", described)
            yield from _words(line, number, span)
        elif _HEADER.fullmatch(line.rstrip()) and _RULE.fullmatch(after):
            section, described = line.strip(), -1
            yield from _words(line, number, Span(0, len(line), "header", KINDS * number))
        elif line:
            spans = [
                Span(begin, end, kind, KINDS * number + index)
                for index, (begin, end, kind) in enumerate(_entry(line, section, after))
            ]
            described = KINDS * number + len(spans) if spans else -1
            for span in spans or [Span(0, len(line), "", -1)]:
                yield from _words(line, number, span)


def _entry(line: str, section: str, after: str) -> list[tuple[int, int, str]]:
    """Begin, end and kind of the entities of a line of a section that is not indented; none for prose."""
    if section not in _NAMED | _TYPED:
        return []
    if entry := _ENTRY.fullmatch(line):
        return [(*entry.span("names"), "name"), (*entry.span("type"), "type")]
    if not after[:1].isspace():
        return []
    if section in _TYPED:
        return [(0, len(line), "type")]
    return [(0, len(line), "name")] if _NAME.fullmatch(line.rstrip()) else []


def _words(line: str, number: int, span: Span) -> Iterator[Word]:
    for word in _WORD.finditer(line, span.begin, span.end):
        yield Word(word[0], number, word.start(), span.entity, span.kind)


def _splits(word: str) -> bool:
    return any(character.isspace() for character in unicodedata.normalize("NFKC", word))
