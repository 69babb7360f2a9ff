"""Find local files by a path, a folder or a glob.

    corpora/wikipedia                every file of a known format in the folder and below
    corpora/2025-*.jsonl.gz          a glob; `**` matches any number of folders
    corpora/notes.csv                one file

Folders are scanned entry by entry, no deeper than the glob requires, and only file names are held in memory. Links to
folders are followed; a link to a folder that contains it is an error, since the same text would be read repeatedly.
"""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path

from pipelines.corpora.reading.extensions import FORMATS, file_format, is_selected
from pipelines.errors import DataError

MOST_FILES = 200_000
"""Limit for one source. Listing this many takes a second, ten million a minute, and over a network hours."""

Folders = tuple[tuple[int, int], ...]
"""Device and inode of a folder and of its ancestors on the way."""


def find_local(path: Path, formats: tuple[str, ...] = FORMATS, most: int = MOST_FILES) -> dict[str, Path]:
    """Files of `formats` by their names in `source` columns, sorted by name.

    DataError for a missing path, a folder or glob without such files, with more than `most` of them or with a link to
    itself, an unknown file extension, and a folder that cannot be read.
    """
    try:
        whole, folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise DataError(
            f"{path}: cannot be accessed: {error.strerror}; check the permissions of its parent folders"
        ) from None
    if whole:
        file_format(path, formats)
        check_name(path.name, str(path.parent))
        return {path.name: path}
    if folder:
        base, pattern = str(path), ["**", "*"]
    elif glob.has_magic(str(path)):
        base, pattern = _split_glob(str(path))
    elif path.exists():
        raise DataError(f"{path}: not a regular file but a device, a pipe or a socket")
    else:
        raise DataError(f"{path}: there is no such file or folder; check the path in params.yaml")
    files: set[str] = set()
    for file in _matches(base, pattern, ()):
        if folder and not is_selected(os.path.basename(file), formats):
            continue
        file_format(Path(file), formats)
        if not os.path.isfile(file):
            raise DataError(f"{file}: this link points to no file; restore its target or remove it")
        files.add(file)
        if len(files) > most:
            raise DataError(too_many_files(str(path), most))
    if not files:
        raise DataError(
            f"{path}: no file with one of the extensions {', '.join(formats)} (or .gz, .zst of these) is there"
        )
    start = len(base.rstrip(os.sep)) + 1
    for file in files:
        check_name(file[start:], base)
    return {file[start:].replace(os.sep, "/"): Path(file) for file in sorted(files)}


def check_name(name: str, folder: str) -> None:
    """Raise DataError for a name of a file that tables and JSON cannot hold, or that is more than one line."""
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    if shown != name:
        raise DataError(f"{folder}: the name of the file {shown!r} is not UTF-8; rename it")
    if control := next((letter for letter in name if ord(letter) < 32 or letter == "\x7f"), None):
        raise DataError(f"{folder}: the name of the file {name!r} has the control character {control!r}; rename it")


def too_many_files(path: str, most: int) -> str:
    """Error message for a source of too many files."""
    return (
        f"{path}: there are more than {most:,} files; put many texts in one file, as jsonl or parquet "
        '(for text files: python -c \'import json,pathlib,sys; [print(json.dumps({"text": p.read_text()})) '
        'for p in pathlib.Path(sys.argv[1]).rglob("*.txt")]\' FOLDER > all.jsonl)'
    )


def _split_glob(pattern: str) -> tuple[str, list[str]]:
    """The folder that a glob starts from, and the name patterns below it."""
    parts = pattern.split(os.sep)
    first = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    below = [
        part
        for number, part in enumerate(parts[first:], first)
        if part and parts[number - 1 : number + 1] != ["**"] * 2
    ]
    return os.sep.join(parts[:first]) or os.sep, below + ["*"] * (below[-1] == "**")


def _matches(folder: str, pattern: list[str], ancestors: Folders) -> Iterator[str]:
    """Files under a folder whose names match, one pattern per level; `**` matches any number of folders."""
    try:
        state = os.stat(folder)
        own = (state.st_dev, state.st_ino)
        if own in ancestors:
            raise DataError(
                f"{folder}: this link leads back to a folder that contains it; remove it, or name the files by a glob"
            )
        entries = os.scandir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataError(f"{folder}: the folder cannot be read: {error.strerror}; check its permissions") from None
    below = (*ancestors, own)
    recursive = pattern[0] == "**"
    names = pattern[1:] if recursive else pattern
    name = re.compile(fnmatch.translate(names[0]))
    folders: list[str] = []
    with entries:
        for entry in entries:
            if entry.name.startswith(".") and not names[0].startswith("."):
                continue
            if _is_folder(entry):
                folders.append(entry.path)
            elif len(names) == 1 and name.match(entry.name) and (entry.is_symlink() or entry.is_file()):
                yield entry.path
    for inner in folders:
        if recursive:
            yield from _matches(inner, pattern, below)
        if len(names) > 1 and name.match(os.path.basename(inner)):
            yield from _matches(inner, names[1:], below)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link to itself
