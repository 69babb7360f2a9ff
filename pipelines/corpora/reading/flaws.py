"""Flaws of records, and handlers that either raise an error or count the flaw and skip the record.

def read_jsonl(part, options, on_flaw): ...
    on_flaw(Flaw("malformed JSON", …, ":17", "not a JSON object: …", line))    # a reader never decides itself

refuse                      the first flaw raises DataError
count_flaws(tally.drop)     every flaw is counted by its reason; the tally keeps a few samples
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import DataError

EXCERPT = 200
"""Characters shown of a bad record."""

_ENCODINGS = ["gb18030", "big5", "cp932", "cp949", "cp1252", "cp1251"]
"""Candidates for the encoding guess. They occur in practice; among fifty more, one line would yield false guesses."""


@dataclass(frozen=True)
class Flaw:
    """A reason why a record, or a whole file, cannot be used."""

    reason: str
    """Short category, the key by which flaws are counted."""
    name: str
    """The file's name in `source` columns."""
    path: Path
    location: str
    """`:17`, a line or row; `@1024`, a byte offset in the decompressed file; empty for the whole file."""
    message: str
    """What is wrong, and what to do about it."""
    excerpt: str = ""
    undecodable: bytes = b""
    """Bytes that could not be decoded, with their surroundings."""

    @property
    def where(self) -> str:
        """The location in the form of `source` columns."""
        return self.name + self.location


FlawHandler = Callable[[Flaw], None]
"""Called with every flaw; it may raise."""


def one_line(error: BaseException) -> str:
    """A library's message, which may have several lines, as a part of a sentence."""
    return " ".join(str(error).split()).rstrip(".")


def refuse(flaw: Flaw, advice: str = "") -> None:
    """Raise DataError with the file, the line and what to do."""
    location = flaw.location
    if location.startswith("@"):
        location = f":{_line_of(flaw.path, int(location[1:]))}"
    raise DataError(f"{flaw.path}{location}: {flaw.message}{_guess(flaw.undecodable)}{advice}")


def refuse_and_suggest_skipping(flaw: Flaw) -> None:
    """Raise DataError as `refuse` does, and suggest `bad_records: skip`."""
    refuse(flaw, "; to skip and count such records, set 'bad_records: skip' in the source")


def count_flaws(drop: Callable[[str, str, str], None]) -> FlawHandler:
    """A handler that calls `drop` with the reason, an excerpt and the location of every flaw."""
    return lambda flaw: drop(flaw.reason, flaw.excerpt[:EXCERPT], flaw.where)


def _line_of(path: Path, offset: int) -> int:
    """Line number of a byte offset in an uncompressed file; counted only when an error is shown."""
    line, remaining = 1, offset
    with path.open("rb") as file:
        while remaining > 0 and (block := file.read(min(remaining, 1 << 20))):
            line += block.count(b"\n")
            remaining -= len(block)
    return line


def _guess(sample: bytes) -> str:
    """` (it looks like gb18030: …)`; empty without a confident guess."""
    if not sample:
        return ""
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_ENCODINGS).best()
    if best is None or best.encoding not in _ENCODINGS:
        return ""
    return f" (it looks like {best.encoding}: if the whole file is, set 'encoding: {best.encoding}' in the source)"
