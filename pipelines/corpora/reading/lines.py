"""Lines of text with their locations, in memory bounded by the longest accepted line."""

from __future__ import annotations

import io
from collections.abc import Iterator

from pipelines.corpora.reading.flaws import Flaw, FlawHandler
from pipelines.corpora.reading.opening import DamagedFileError, damaged_file_flaw, open_part
from pipelines.corpora.reading.options import ReadOptions
from pipelines.corpora.reading.parts import Part

Line = tuple[str, str]
"""Location (`:17` or `@1024`) and text with the line end."""

MOST_BLANK = 100_000
"""Blank lines in a row. No text has so many, and reading them takes minutes for a megabyte of a packed file."""

_AROUND = 2048
"""Bytes of an undecodable line, and after it, from which the encoding is guessed."""
_ENOUGH = 24
"""Non-ASCII bytes from which a line suffices for the guess; what follows it may be in the right encoding."""


def lines(part: Part, options: ReadOptions, on_flaw: FlawHandler) -> Iterator[Line]:
    """Decode the lines that begin in a part, with line ends; a byte order mark at the start of the file is removed.

    Of a truncated file, all lines before the truncated one are yielded. Flaws: overlong line, not UTF-8 (or the
    encoding in the options), damaged file, blank lines without end, after which the part is not read further, and those
    of `open_part`.
    """
    with open_part(part, on_flaw) as file:
        if file is None:
            return
        position, number, blank = 0, 0, 0
        try:
            if part.begin:
                file.seek(part.begin - 1)
                position = part.begin - 1 + _rest_of_line(file, options.longest)
            while part.end is None or position < part.end:
                line = file.readline(options.longest + 1)
                if not line:
                    break
                number += 1
                location = f":{number}" if part.is_whole else f"@{position}"
                if len(line) > options.longest and not line.endswith(b"\n"):
                    size = len(line) + _rest_of_line(file, options.longest)
                    on_flaw(_overlong(part, location, size, line[:400], options))
                    position += size
                    continue
                start, position = position, position + len(line)
                blank = blank + 1 if line.isspace() else 0
                if blank > MOST_BLANK:
                    on_flaw(_blank(part, location))
                    return
                try:
                    text = line.decode(options.encoding)
                except UnicodeDecodeError as error:
                    on_flaw(_undecodable(part, location, start, line, error, file, options))
                    continue
                yield location, text.removeprefix("\ufeff") if start == 0 else text
        except DamagedFileError as damage:
            on_flaw(damaged_file_flaw(part, position, damage))


def _rest_of_line(file: io.BufferedReader, block: int) -> int:
    """Skip the rest of a line and return its size in bytes."""
    size = 0
    while rest := file.readline(block):
        size += len(rest)
        if rest.endswith(b"\n"):
            break
    return size


def _blank(part: Part, location: str) -> Flaw:
    message = f"more than {MOST_BLANK:,} lines in a row are blank; remove them, or the file"
    return Flaw("blank lines", part.name, part.path, location, message)


def _overlong(part: Part, location: str, size: int, begin: bytes, options: ReadOptions) -> Flaw:
    message = (
        f"the line has {size:,} bytes, more than longest_document allows ({options.longest:,}); "
        "split it into documents, or raise longest_document"
    )
    return Flaw("overlong line", part.name, part.path, location, message, begin.decode(options.encoding, "replace"))


def _undecodable(
    part: Part,
    location: str,
    start: int,
    line: bytes,
    error: UnicodeDecodeError,
    file: io.BufferedReader,
    options: ReadOptions,
) -> Flaw:
    encoding = options.encoding.upper()
    message = f"byte {start + error.start} is not {encoding} ({error.reason}); save the file as {encoding}"
    try:
        following = file.peek(_AROUND)[:_AROUND]
    except DamagedFileError:
        following = b""
    excerpt = line[max(0, error.start - 60) : error.start + 140].decode(options.encoding, "backslashreplace")
    begin = line[:_AROUND]
    non_ascii = len(begin) - len(begin.decode("ascii", "ignore"))
    return Flaw(
        f"not {encoding}",
        part.name,
        part.path,
        location,
        message,
        excerpt,
        begin if non_ascii >= _ENOUGH else begin + following,
    )
