"""Comma-separated values (.csv, RFC 4180): the first row names the columns unless the source does.

An unclosed quote would swallow all rows that follow it. The flaw is reported at the line where the quote opened, as
soon as the row exceeds the longest document or the file ends; where records may be skipped, reading resumes after that
line.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator

from pipelines.corpora.reading.flaws import Flaw, FlawHandler
from pipelines.corpora.reading.lines import Line, lines
from pipelines.corpora.reading.options import ReadOptions, Records
from pipelines.corpora.reading.parts import Part


def read_csv(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Records:
    """Read the rows of a file and the lines on which they begin.

    Flaws: those of `lines`, missing column (for the file as a whole), wrong number of fields, broken quotes, overlong
    row.
    """
    csv.field_size_limit(2**31 - 1)  # a row is measured as a whole
    header = list(options.header)
    for location, row, line in _rows(part, options, on_flaw):
        if not header:
            header = row
            if _has_bad_header(part, location, header, options, on_flaw):
                return
        elif len(row) != len(header):
            message = (
                f"the row has {len(row)} fields, not as many fields as the header ({len(header)}); "
                "quote fields that hold commas or line ends, and double the quotes in them"
            )
            on_flaw(Flaw("wrong number of fields", part.name, part.path, location, message, line))
        else:
            yield part.name + location, dict(zip(header, row, strict=True))


def _has_bad_header(part: Part, location: str, header: list[str], options: ReadOptions, on_flaw: FlawHandler) -> bool:
    """Whether the header lacks a required column or names one twice."""
    for column in options.columns:
        if column not in header:
            message = f"there is no column {column!r}; the columns are {', '.join(map(repr, header))}"
            on_flaw(Flaw("missing column", part.name, part.path, location, message))
            return True
        if header.count(column) > 1:
            message = f"the column {column!r} is named twice; rename one of them"
            on_flaw(Flaw("missing column", part.name, part.path, location, message))
            return True
    return False


class _Feed:
    """Lines for `csv.reader`, kept until their row is complete, so that a broken row can be read again."""

    def __init__(self, part: Part, options: ReadOptions, on_flaw: FlawHandler) -> None:
        self._lines = lines(part, options, self._on_flaw_in_line)
        self._on_flaw = on_flaw
        self._pending: deque[Line] = deque()
        self._longest = options.longest
        self._size = 0
        self.row: list[Line] = []
        """The lines of the row that is being read."""
        self.is_damaged = False
        """Whether a line inside that row could not be read."""

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if self._size > self._longest:
            raise _RowTooLongError
        line = self._pending.popleft() if self._pending else next(self._lines)
        self.row.append(line)
        self._size += len(line[1])
        return line[1]

    def next_row(self) -> None:
        """Start a new row."""
        self.row, self._size, self.is_damaged = [], 0, False

    def back_to_second_line(self) -> None:
        """Drop the first line of the row and read the others again."""
        self._pending.extendleft(reversed(self.row[1:]))
        self.next_row()

    def _on_flaw_in_line(self, flaw: Flaw) -> None:
        self.is_damaged = bool(self.row)
        self._on_flaw(flaw)


class _RowTooLongError(Exception):
    """A row is longer than the longest document."""


def _rows(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Iterator[tuple[str, list[str], str]]:
    """Location, fields and first line of every row."""
    feed = _Feed(part, options, on_flaw)
    reader = csv.reader(feed, strict=True)
    while True:
        feed.next_row()
        try:
            row = next(reader)
        except StopIteration:
            return
        except _RowTooLongError:
            message = (
                "a quote that opens in this row is not closed within the length of a document; close it, or double it"
            )
        except csv.Error as error:
            unclosed = "unexpected end of data" in str(error)
            message = (
                "a quote that opens in this row is never closed; close it, or double it"
                if unclosed
                else (
                    f"not readable as CSV: {error}; "
                    "quote fields that hold commas or line ends, and double the quotes in them"
                )
            )
        else:
            if row and not feed.is_damaged:
                yield feed.row[0][0], row, feed.row[0][1]
            continue
        location, line = feed.row[0]
        feed.back_to_second_line()
        on_flaw(Flaw("broken quotes", part.name, part.path, location, message, line))
        reader = csv.reader(feed, strict=True)
