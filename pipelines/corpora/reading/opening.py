"""Open a part of a file as decompressed bytes; files that hold no text are detected by their first bytes."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from pipelines.corpora.reading.flaws import Flaw, FlawHandler, one_line
from pipelines.corpora.reading.parts import Part
from pipelines.errors import DataError

BUFFER = 1 << 20
SNIFFED = 8192
"""Leading bytes that are checked: a file with a NUL byte among them is binary (git's rule)."""

MOST_TEXT = 64
"""Bytes of text from one packed byte. Text gives 2 to 20; a bomb gives 1,000 with gzip, millions with Zstandard."""
UNLIMITED = 2**18
"""Bytes of text that any packed file may give: of a small file the ratio says nothing."""

_SIGNATURES = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document; extract its text first"),
    (b"PK\x03\x04", "a zip archive, or a docx or xlsx document; unpack it, or save it as text"),
    (b"\xd0\xcf\x11\xe0", "a doc or xls document; save it as text"),
    (b"\x1f\x8b", "compressed with gzip; rename it to end in .gz"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard; rename it to end in .zst"),
    (b"BZh", "compressed with bzip2; compress it with gzip or zstd"),
    (b"\xfd7zXZ\x00", "compressed with xz; compress it with gzip or zstd"),
    (b"PAR1", "Parquet; rename it to end in .parquet"),
    (b"ARROW1", "Arrow IPC; save it as Parquet"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"\x7fELF", "an executable program"),
    (b"\xff\xfe", "UTF-16; convert it: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16; convert it: iconv -f UTF-16 -t UTF-8"),
)


class DamagedFileError(Exception):
    """A compressed file is truncated or invalid; `args` hold the library's message."""


class BombError(DamagedFileError):
    """A compressed file gives more text than text can be compressed to its size."""


@contextmanager
def open_part(part: Part, on_flaw: FlawHandler) -> Iterator[io.BufferedReader | None]:
    """Open the decompressed file of `part`; None, after a call of `on_flaw`, for a file that holds no text.

    DataError for a file that cannot be read or that changed meanwhile. Reading raises DamagedFileError.
    """
    part.check_unchanged()
    try:
        with _decompressed(part.path) as file:
            head = _head(file, part, on_flaw)
            yield file if head is not None else None
    except OSError as error:
        raise DataError(
            f"{part.path}: cannot be read: {error.strerror or error}; check its permissions and the disk"
        ) from None
    part.check_unchanged()


def binary_kind(head: bytes) -> str | None:
    """The file type that the first bytes indicate; None for text."""
    for signature, meaning in _SIGNATURES:
        if head.startswith(signature):
            return meaning
    return "binary: it holds NUL bytes" if b"\0" in head else None


def _head(file: io.BufferedReader, part: Part, on_flaw: FlawHandler) -> bytes | None:
    """The first bytes of a text file, else None. Flaws of a file in parts are reported with its first part only."""
    report = on_flaw if part.begin == 0 else _ignore
    try:
        head = file.peek(SNIFFED)[:SNIFFED]
    except DamagedFileError as damage:
        report(damaged_file_flaw(part, 0, damage))
        return None
    if not head:
        report(Flaw("empty file", part.name, part.path, "", "the file is empty; fetch it again or remove it"))
        return None
    meaning = binary_kind(head)
    if meaning:
        excerpt = repr(head[:60])
        report(Flaw("not a file of text", part.name, part.path, "", f"not a text file but {meaning}", excerpt))
        return None
    return head


def damaged_file_flaw(part: Part, position: int, damage: DamagedFileError) -> Flaw:
    """The flaw of a compressed file that could be decompressed only up to a byte."""
    kind = {".gz": "gzip", ".zst": "Zstandard"}[part.path.suffix.lower()]
    if isinstance(damage, BombError):
        message = f"the {kind} file is a decompression bomb: {damage}; remove it, or unpack it if it is text"
        return Flaw("decompression bomb", part.name, part.path, "", message)
    message = (
        f"the {kind} file is damaged or truncated after {position:,} bytes of text: {damage}; fetch or compress it "
        "again"
    )
    return Flaw("damaged file", part.name, part.path, "", message)


def _ignore(_: Flaw) -> None:
    """Handle a flaw that was already reported."""


def _decompressed(path: Path) -> io.BufferedReader:
    compression = path.suffix.lower()
    if compression == ".gz":
        return io.BufferedReader(_Decompressed(gzip.open(path), path.stat().st_size), BUFFER)
    if compression == ".zst":
        import pyarrow as pa

        # not the package zstandard, whose readers treat a truncated file as complete
        inside = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
        return io.BufferedReader(_Decompressed(inside, path.stat().st_size), BUFFER)
    return io.BufferedReader(io.FileIO(path), BUFFER)


class _Decompressed(io.RawIOBase):
    """A decompressing stream that raises one exception for all kinds of damage, and stops a bomb."""

    def __init__(self, inside: Any, packed: int) -> None:
        self._inside, self._packed, self._size = inside, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            size = cast(int, self._inside.readinto(buffer))
        except (EOFError, zlib.error) as error:
            raise DamagedFileError(one_line(error)) from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise DamagedFileError(one_line(error)) from None  # gzip's and Arrow's errors about content have no errno
        self._size += size
        if self._size > max(UNLIMITED, MOST_TEXT * self._packed):
            raise BombError(f"{self._packed:,} packed bytes give more than {self._size - size:,} bytes of text")
        return size

    def close(self) -> None:
        self._inside.close()
        super().close()
