"""File formats by file extension: `reviews.jsonl.zst` is jsonl, compressed with Zstandard."""

from __future__ import annotations

from pathlib import PurePath

from pipelines.errors import DataError

FORMATS = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
"""Extensions of text corpora."""
EXAMPLE_FORMATS = (".jsonl", ".csv", ".tsv", ".json", ".conllu", ".parquet")
"""Extensions of files of labelled examples."""
COMPRESSED = (".gz", ".zst")
"""Extensions of compressed files, after the extension of the format."""

_UNSUPPORTED_COMPRESSION = (".bz2", ".xz", ".lzma", ".lz4", ".br", ".zip", ".7z", ".z", ".snappy")


def file_format(path: PurePath, formats: tuple[str, ...]) -> str:
    """The extension of a file without that of its compression. DataError when it is not among `formats`."""
    extension, compression = _extensions(path.name)
    if extension not in formats or (extension == ".parquet" and compression):
        plain = ", ".join(each[1:] for each in formats if each != ".parquet")
        inside = f": {extension[1:]} compresses its columns itself" if extension == ".parquet" and compression else ""
        raise DataError(
            f"{path}: unknown file extension; known: {', '.join(formats)}, "
            f"and {' or '.join(COMPRESSED)} of {plain}{inside}"
        )
    return extension


def is_compressed(path: PurePath) -> bool:
    """Whether the file must be decompressed to be read."""
    return bool(_extensions(path.name)[1])


def is_selected(name: str, formats: tuple[str, ...]) -> bool:
    """Whether a file in a folder is to be read.

    DataError for a known format in an unsupported compression, which would otherwise be left out silently.
    """
    extension, compression = _extensions(name)
    if compression and extension == ".parquet" and extension in formats:
        return not file_format(PurePath(name), formats)
    stem, _, last = name.rpartition(".")
    if f".{last.lower()}" in _UNSUPPORTED_COMPRESSION and PurePath(stem).suffix.lower() in formats:
        raise DataError(f"{name}: .{last} is not supported; compress the file with gzip or zstd, or move it elsewhere")
    return extension in formats


def _extensions(name: str) -> tuple[str, str]:
    """Extension of the format and of the compression, lower case; either may be empty."""
    path = PurePath(name)
    compression = path.suffix.lower() if path.suffix.lower() in COMPRESSED else ""
    return (PurePath(path.stem).suffix if compression else path.suffix).lower(), compression
