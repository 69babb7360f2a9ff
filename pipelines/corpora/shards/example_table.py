"""Labelled examples on the disk, of which one row group is in memory."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from pipelines.corpora.shards.folders import table_files

if TYPE_CHECKING:
    from pipelines.task_families import Row


class _LazyRows(Sequence["Row"]):
    """Rows of which a slice is a list."""

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self._row(one) for one in range(*index.indices(len(self)))]
        return self._row(range(len(self))[index])

    def _row(self, index: int) -> Row:
        raise NotImplementedError


class ExampleTable(_LazyRows):
    """The rows of a table. Reading them in order reads the file once; an access elsewhere reads a row group.

    `columns` are those to read; None: all.
    """

    def __init__(self, path: Path, columns: Sequence[str] | None = None) -> None:
        import pyarrow.parquet as parquet

        self._path = path
        self._columns = None if columns is None else [*columns]
        self._groups: list[tuple[Path, int]] = []
        sizes: list[int] = []
        for file in table_files(path):
            metadata = parquet.read_metadata(file)
            self._groups += [(file, group) for group in range(metadata.num_row_groups)]
            sizes += [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._ends = list(itertools.accumulate(sizes))
        self._held: tuple[int, list[Row]] = (-1, [])

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Row]:
        for group in range(len(self._groups)):
            yield from self._read(group)

    def values(self, column: str) -> list[Any]:
        """The values of one column, in order."""
        return [row[column] for row in ExampleTable(self._path, [column])]

    def take(self, indices: Sequence[int]) -> list[Row]:
        """The rows with these indices, in their order; a row that comes several times is one object."""
        chosen = dict.fromkeys(sorted(indices))
        rows = {index: self._row(index) for index in chosen}
        return [rows[index] for index in indices]

    def sample(self, most: int, seed: int) -> list[Row]:
        """The rows, or `most` of them in their order, drawn by `seed`."""
        if len(self) <= most:
            return list(self)
        drawn = np.random.default_rng([seed, 11]).choice(len(self), most, replace=False)
        return self.take(np.sort(drawn).tolist())

    def _row(self, index: int) -> Row:
        group = bisect_right(self._ends, index)
        if self._held[0] != group:
            self._held = group, self._read(group)
        return self._held[1][index - (self._ends[group - 1] if group else 0)]

    def _read(self, group: int) -> list[Row]:
        import pyarrow.parquet as parquet

        path, number = self._groups[group]
        with parquet.ParquetFile(path) as file:
            rows: list[Row] = file.read_row_group(number, columns=self._columns, use_threads=False).to_pylist()
        return rows


class JoinedRows(_LazyRows):
    """Several sequences of rows, one after the other."""

    def __init__(self, *parts: Sequence[Row]) -> None:
        self._parts = parts
        self._ends = list(itertools.accumulate(map(len, parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Row]:
        return itertools.chain.from_iterable(self._parts)

    def _row(self, index: int) -> Row:
        part = bisect_right(self._ends, index)
        return self._parts[part][index - (self._ends[part - 1] if part else 0)]
