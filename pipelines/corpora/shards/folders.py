"""Tables too large for memory: a folder of Parquet shards, and a manifest that says what is in them.

    data/prepared/mine/cleaned/general/
      00000.parquet, 00001.parquet, …       at most SHARD_BYTES of text each, and one document
      _manifest.json                        documents, characters, bytes and sha256 of every shard; what was left out, and why

A step that changes a table is a `Change`: a picklable callable from the rows of one shard to rows. `mapped` runs it over
all shards in several processes, and after an interruption over those that are missing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpora.engines.work import ALONE_BELOW, worked
from pipelines.corpora.shards.tables import Row, TableWriter, read_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.errors import DataError

SHARD_BYTES = 64 * 2**20
"""UTF-8 bytes of text after which a new shard begins."""
MANIFEST = "_manifest.json"
"""pyarrow and pandas read the folder as one table: they pass over names that begin with an underscore."""

Change = Callable[[Iterator[Row], Tally], Iterable[Row]]
"""The rows of one shard → the rows that take their place; what is left out or changed is told to the tally."""


def table_files(table: Path) -> list[Path]:
    """The Parquet files of a table, in order: those its manifest names, or the table itself when it is one file.

    DataError when the folder is no table.
    """
    if not table.is_dir():
        return [table]
    return [table / shard["file"] for shard in manifest(table)["shards"]]


def manifest(table: Path) -> dict[str, Any]:
    """What is known of a table in a folder. DataError when there is no manifest: the folder is no table, or not whole."""
    try:
        known: dict[str, Any] = read_json(table / MANIFEST)
    except FileNotFoundError:
        raise DataError(
            f"{table}: there is no {MANIFEST}: this is no table; run the step that writes it again"
        ) from None
    return known


def write_shards(folder: Path, schema: pa.Schema, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Write rows into `folder` as one shard after another, at least one, and return what each of them holds."""
    found: list[dict[str, Any]] = []
    waiting = iter(rows)
    more = True
    while more:
        path = folder / f"{len(found):05d}.parquet"
        with TableWriter(path, schema) as writer:
            more = False
            for row in waiting:
                writer.write(row)
                if writer.counts["bytes"] >= SHARD_BYTES:
                    more = True
                    break
        if found and not writer.counts["documents"]:
            path.unlink()  # the rows before ended with their shard
        else:
            found.append({"file": path.name, **writer.counts, "sha256": _sha256(path)})
    return found


@dataclass(frozen=True)
class Written:
    """A unit of work that writes rows: `make(tally)` gives them."""

    name: str
    schema: pa.Schema
    make: Callable[[Tally], Iterable[Row]]

    def __call__(self, folder: Path) -> None:
        tally = Tally()
        shards = write_shards(folder, self.schema, self.make(tally))
        write_json(folder / MANIFEST, {"shards": shards, **tally.counts()})


@dataclass(frozen=True)
class Changed:
    """The rows of one shard, changed."""

    path: Path
    change: Change

    def __call__(self, tally: Tally) -> Iterable[Row]:
        return self.change(read_rows(self.path), tally)


def mapped(
    table: Path, destination: Path, schema: pa.Schema, change: Change, home: Path, processes: int
) -> dict[str, Any]:
    """Write `destination` from `table`, shard by shard; unfinished work stands in `home`. Returns its manifest."""
    units = [Written(f"{number:05d}", schema, Changed(path, change)) for number, path in enumerate(table_files(table))]
    return joined(units, destination, home, processes, manifest(table)["bytes"])


def joined(units: Sequence[Written], destination: Path, home: Path, processes: int, size: int) -> dict[str, Any]:
    """Write the table `destination` from units of work, in their order. Returns its manifest.

    `size` is how many bytes there are to read: little is read by one process.
    """
    return sealed(worked(units, home, processes if size > ALONE_BELOW else 1), destination)


def sealed(folders: Sequence[Path], destination: Path) -> dict[str, Any]:
    """The table `destination` of finished folders as `Written` makes them, in their order. Returns its manifest."""
    destination.mkdir(parents=True)
    tally = Tally()
    parts = [(folder, read_json(folder / MANIFEST)) for folder in folders]
    written = [(folder / shard["file"], shard) for folder, part in parts for shard in part["shards"]]
    # an empty table still says what its columns are
    kept = [pair for pair in written if pair[1]["documents"]] or written[:1]
    shards: list[dict[str, Any]] = []
    for path, shard in kept:
        file = f"{len(shards):05d}.parquet"
        _link(path, destination / file)
        shards.append(shard | {"file": file})
    for _, part in parts:
        tally.add(part)
    totals = {key: sum(shard[key] for shard in shards) for key in ("documents", "characters", "bytes")}
    whole = {"shards": shards, **totals, **tally.counts()}
    write_json(destination / MANIFEST, whole)
    return whole


def written(destination: Path, schema: pa.Schema, rows: Iterable[Row], tally: Tally) -> dict[str, Any]:
    """Write the table `destination` from one stream of rows, whose maker tells `tally`. Returns its manifest."""
    destination.mkdir(parents=True)
    shards = write_shards(destination, schema, rows)
    totals = {key: sum(shard[key] for shard in shards) for key in ("documents", "characters", "bytes")}
    whole = {"shards": shards, **totals, **tally.counts()}
    write_json(destination / MANIFEST, whole)
    return whole


def _link(path: Path, other: Path) -> None:
    """The same file under another name: finished work stays where a later call would look for it."""
    try:
        os.link(path, other)
    except OSError:  # a file system without links
        shutil.copy2(path, other)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
