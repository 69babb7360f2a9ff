"""Lines of `word/tag`, the format of Peking University's People's Daily corpus: as plain text, or as sentences with
names.

江/nr  泽民/nr  访问/v  美国/ns     ─▶  江 泽 民 访 问 美 国,  B-person I-person I-person O O B-place I-place
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

TaggedWord = tuple[str, str]
"""Word and part of speech."""

_ENDS = frozenset("。！？；!?")
_CLOSES = frozenset("”’」』）)》")


def tagged_line(line: str) -> list[TaggedWord]:
    """Parse the words of a line with their tags; a word without a tag has the tag ''."""
    words = []
    for item in line.split():
        word, slash, tag = item.rpartition("/")
        words.append((word, tag) if slash and word else (item, ""))
    return words


def sentences(words: Sequence[TaggedWord]) -> Iterator[Sequence[TaggedWord]]:
    """Split words into sentences, after each sentence-ending mark and the closing marks that follow it."""
    begin, ended = 0, False
    for index, (word, _) in enumerate(words):
        if ended and word not in _CLOSES:
            yield words[begin:index]
            begin, ended = index, False
        ended = ended or word in _ENDS
    if begin < len(words):
        yield words[begin:]


def named(
    words: Sequence[TaggedWord], kinds: Mapping[str, str], together: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The characters of a sentence and their IOB2 tags.

    A word whose tag is in `kinds` is an entity of that type. Neighbouring words are one entity if their tag is in
    `together` and the first of them has one character: a family name and a given name.
    """
    tokens: list[str] = []
    tags: list[str] = []
    before: TaggedWord = ("", "")
    for word, tag in words:
        characters = [character for character in word if not re.match(r"\s", character)]
        kind = kinds.get(tag)
        continues = tag in together and before[1] == tag and len(before[0]) == 1
        tokens += characters
        if kind is None:
            tags += ["O"] * len(characters)
        else:
            tags += [f"{'I' if continues or number else 'B'}-{kind}" for number in range(len(characters))]
        # a given name ends the name, whatever its length
        before = ("", "") if continues else (word, tag)
    return tokens, tags
