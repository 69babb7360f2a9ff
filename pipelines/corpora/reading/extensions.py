"""What a file is by the ending of its name: `reviews.jsonl.zst` is jsonl, packed with Zstandard."""

from __future__ import annotations

from pathlib import PurePath

from pipelines.errors import DataError

FORMATS = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
"""Endings of files of plain text."""
EXAMPLE_FORMATS = (".jsonl", ".csv", ".tsv", ".json", ".conllu", ".parquet")
"""Endings of files of labelled examples."""
PACKED = (".gz", ".zst")
"""Endings of packed files, behind the ending of what is packed."""

_NOT_UNPACKED = (".bz2", ".xz", ".lzma", ".lz4", ".br", ".zip", ".7z", ".z", ".snappy")


def file_format(path: PurePath, formats: tuple[str, ...]) -> str:
    """The ending of a file, without that of a packed one. DataError when it is none of `formats`."""
    ending, packing = _endings(path.name)
    if ending not in formats or (ending == ".parquet" and packing):
        plain = ", ".join(each[1:] for each in formats if each != ".parquet")
        inside = f": {ending[1:]} packs its columns itself" if ending == ".parquet" and packing else ""
        raise DataError(
            f"{path}: unknown ending; known: {', '.join(formats)}, and {' or '.join(PACKED)} of {plain}{inside}"
        )
    return ending


def is_packed(path: PurePath) -> bool:
    """Whether the file has to be unpacked to be read."""
    return bool(_endings(path.name)[1])


def is_meant(name: str, formats: tuple[str, ...]) -> bool:
    """Whether a file of a folder is one of those to read.

    DataError for a readable format in a packing that is not read here: left out in silence, it would be missed by nobody.
    """
    ending, packing = _endings(name)
    if packing and ending == ".parquet" and ending in formats:
        return not file_format(PurePath(name), formats)
    stem, _, last = name.rpartition(".")
    if f".{last.lower()}" in _NOT_UNPACKED and PurePath(stem).suffix.lower() in formats:
        raise DataError(f"{name}: .{last} is not unpacked here; pack the file with gzip or zstd, or move it elsewhere")
    return ending in formats


def _endings(name: str) -> tuple[str, str]:
    """The ending of the format and that of the packing, in small letters; either may be empty."""
    path = PurePath(name)
    packing = path.suffix.lower() if path.suffix.lower() in PACKED else ""
    return (PurePath(path.stem).suffix if packing else path.suffix).lower(), packing
