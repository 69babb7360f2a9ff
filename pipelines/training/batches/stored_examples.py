"""Encoded examples in files: any number of them is encoded in bounded memory, and batches map what they read.

    rows ─▶ excerpts ─▶ encoded ─▶ columns ─▶ <folder>/0.values, 0.lengths, 1.values, … ─▶ batches

The folder is that of one job: what it was made of does not change while it exists. It is published whole, so that a
killed process leaves none, and found again by the next attempt and by the other ranks. Files that are damaged, or of
other columns, are written again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.corpora.shards.writing import replaced_atomically
from pipelines.task_families.columns import Columns, RaggedArrays, lengths_of
from pipelines.task_families.excerpt import excerpts
from pipelines.training.batches.digesting_file import DigestingFile
from pipelines.training.batches.token_stream import MANIFEST, is_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families import Row
    from pipelines.task_families.encoding import EncodedExamples

AT_ONCE = 2048
"""Examples that are encoded together; fewer than these are not stored."""
CHARACTERS = 2**21
"""No further ones are added to examples with so many characters: a token in the making takes about 100 bytes."""
INTEGERS = np.dtype(np.int32)
"""The widest type of what arrays of different lengths hold: ids, positions, characters."""
AT_A_TIME = 2**20
"""Values that are rewritten at a time."""


def encode_stored(
    rows: Sequence[Row],
    encode: Callable[[Sequence[Row]], EncodedExamples],
    folder: Path,
    report: Callable[[str], None] = lambda line: None,
) -> EncodedExamples:
    """`encode(rows)`, of which only a bounded part is in memory; `folder` receives the rest, unless there are few.

    `report` is called with a line about how far it is. Raises what `encode` raises, with the numbers of `rows`.
    """
    if len(rows) <= AT_ONCE:
        return encode(list(rows))
    first = encode(next(excerpts(rows, 1, CHARACTERS)))
    if not _holds(folder, rows, first.columns()):
        folder.parent.mkdir(parents=True, exist_ok=True)
        for left in folder.parent.glob(f".{folder.name}-*"):
            shutil.rmtree(left)
        with replaced_atomically(folder) as temporary:
            _write(rows, encode, temporary, report)
    return first.with_columns(rows, _mapped(folder))


def _holds(folder: Path, rows: Sequence[Row], columns: Columns) -> bool:
    if not is_whole(folder):
        return False
    manifest = _manifest(folder)
    return manifest["rows"] == len(rows) and [one["name"] for one in manifest["columns"]] == [*columns]


def _write(
    rows: Sequence[Row],
    encode: Callable[[Sequence[Row]], EncodedExamples],
    folder: Path,
    report: Callable[[str], None],
) -> None:
    writers: dict[str, _ColumnWriter] = {}
    with ExitStack() as files:
        for excerpt in excerpts(rows, AT_ONCE, CHARACTERS):
            for name, column in encode(excerpt).columns().items():
                if name not in writers:
                    writers[name] = _ColumnWriter(name, column, folder / str(len(writers)), files)
                writers[name].append(column)
            report(f"encoding examples: {excerpt.first + len(excerpt):,} of {len(rows):,}")
    for one in writers.values():
        one.shrink()
    content = {
        "rows": len(rows),
        "columns": [one.record() for one in writers.values()],
        "files": {file.path.name: file.record() for one in writers.values() for file in one.files},
    }
    with DigestingFile(folder / MANIFEST) as manifest:
        manifest.write(np.frombuffer(json.dumps(content, indent=1).encode(), dtype=np.uint8))


class _ColumnWriter:
    """Writes the files of a column: integers of arrays of different lengths as the smallest that hold all of them."""

    def __init__(self, name: str, column: Any, path: Path, files: ExitStack) -> None:
        self.name, self.ragged = name, not isinstance(column, np.ndarray)
        one = np.asarray(column[0])
        self.kind = INTEGERS if self.ragged and one.dtype.kind != "f" else one.dtype
        self.shape = one.shape[1:] if self.ragged else one.shape
        names = (f"{path.name}.values", f"{path.name}.lengths")[: 1 + self.ragged]
        self.files = [files.enter_context(DigestingFile(path.with_name(one))) for one in names]
        self._least, self._most = 0, 0

    def append(self, column: Any) -> None:
        values: NDArray[Any] = np.concatenate(list(column)) if self.ragged else np.asarray(column)
        self.files[0].write(values.astype(self.kind))
        if self.ragged:
            self.files[1].write(lengths_of(column))
            if values.size and self.kind == INTEGERS:
                self._least, self._most = min(self._least, int(values.min())), max(self._most, int(values.max()))

    def shrink(self) -> None:
        """Write the values again, once all of them are known; the files must have been closed."""
        kind = np.result_type(np.min_scalar_type(self._least), np.min_scalar_type(self._most))
        if not self.ragged or self.kind != INTEGERS or kind.itemsize >= self.kind.itemsize:
            return
        path = self.files[0].path
        wide = path.rename(path.with_suffix(".wide"))
        with DigestingFile(path) as smaller:
            values = _array(wide, self.kind.str)
            for begin in range(0, len(values), AT_A_TIME):
                smaller.write(values[begin : begin + AT_A_TIME].astype(kind))
        wide.unlink()
        self.files[0], self.kind = smaller, kind

    def record(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "kind": self.kind.str,
            "shape": self.shape,
            "files": [file.path.name for file in self.files],
        }


def _manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    return content


def _mapped(folder: Path) -> Columns:
    columns: dict[str, Any] = {}
    for one in _manifest(folder)["columns"]:
        values = _array(folder / one["files"][0], one["kind"]).reshape(-1, *one["shape"])
        lengths = [_array(folder / name, "int64") for name in one["files"][1:]]
        columns[one["name"]] = RaggedArrays(values, lengths[0]) if lengths else values
    return columns


def _array(path: Path, kind: str) -> NDArray[Any]:
    """The array in a file, mapped; empty where the file is."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.asarray(np.memmap(path, dtype=kind, mode="r"))
