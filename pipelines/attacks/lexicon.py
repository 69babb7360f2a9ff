"""Lexicons: a word a line, then what may stand for it, with tabs between."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pipelines.errors import DataError


@cache
def read_lexicon(path: Path) -> dict[str, tuple[str, ...]]:
    """Word → its alternatives, in the order of the file; lines that begin with `#` are remarks.

    Raises DataError naming the file, and the line that is not of this form.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read as a lexicon ({error}); write word, tab, alternative in UTF-8"
        ) from None
    found: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, *others = (field.strip() for field in line.split("\t"))
        if not word or not others or not all(others) or word in others:
            raise DataError(f"{path}, line {number}: expected a word and other words for it, with tabs between")
        found[word] = (*found.get(word, ()), *others)
    if not found:
        raise DataError(f"{path}: holds no word; write word, tab, alternative on a line")
    return found
