"""Tables too large for memory: a folder of Parquet shards with a manifest of their contents.

    data/prepared/mine/cleaned/general/
      00000.parquet, 00001.parquet, …       at most SHARD_BYTES of text each, and one document
      _manifest.json                        documents, characters, bytes, sha256 per shard; what was dropped, and why

A step that changes a table is a `ShardChange`: a picklable callable from the rows of one shard to rows. `map_shards`
applies it to all shards in several processes, and after an interruption to the missing ones.
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

from pipelines.corpora.engines.work import ALONE_BELOW, run_units
from pipelines.corpora.shards.tables import Row, TableWriter, read_rows
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.errors import DataError

SHARD_BYTES = 64 * 2**20
"""UTF-8 bytes of text at which a new shard is started."""
MANIFEST = "_manifest.json"
"""pyarrow and pandas skip names with a leading underscore when they read the folder as one table."""

ShardChange = Callable[[Iterator[Row], Tally], Iterable[Row]]
"""Rows of one shard → the rows that replace them; what is dropped or changed is counted in the tally."""


def table_files(table: Path) -> list[Path]:
    """Parquet files of a table, in order: those in its manifest, or the table itself when it is one file.

    DataError when the folder is not a table.
    """
    if not table.is_dir():
        return [table]
    return [table / shard["file"] for shard in manifest(table)["shards"]]


def manifest(table: Path) -> dict[str, Any]:
    """Read the manifest of a table folder. DataError without one: the folder is not a table, or incomplete."""
    try:
        content: dict[str, Any] = read_json(table / MANIFEST)
    except FileNotFoundError:
        raise DataError(
            f"{table}: no {MANIFEST}, so this is not a complete table; run the step that writes it again"
        ) from None
    return content


def write_shards(folder: Path, schema: pa.Schema, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Write rows into `folder` as consecutive shards, at least one; return the manifest entry of each."""
    shards: list[dict[str, Any]] = []
    waiting = iter(rows)
    more = True
    while more:
        path = folder / f"{len(shards):05d}.parquet"
        with TableWriter(path, schema) as writer:
            more = False
            for row in waiting:
                writer.write(row)
                if writer.counts["bytes"] >= SHARD_BYTES:
                    more = True
                    break
        if shards and not writer.counts["documents"]:
            path.unlink()  # the rows ended exactly with the previous shard
        else:
            shards.append({"file": path.name, **writer.counts, "sha256": _sha256(path)})
    return shards


@dataclass(frozen=True)
class WriteShards:
    """Unit of work that writes the rows of `make(tally)` as shards."""

    name: str
    schema: pa.Schema
    make: Callable[[Tally], Iterable[Row]]

    def __call__(self, folder: Path) -> None:
        tally = Tally()
        shards = write_shards(folder, self.schema, self.make(tally))
        write_json(folder / MANIFEST, {"shards": shards, **tally.counts()})


@dataclass(frozen=True)
class ChangeShard:
    """Rows of one shard after a change."""

    path: Path
    change: ShardChange

    def __call__(self, tally: Tally) -> Iterable[Row]:
        return self.change(read_rows(self.path), tally)


def map_shards(
    table: Path, destination: Path, schema: pa.Schema, change: ShardChange, home: Path, processes: int
) -> dict[str, Any]:
    """Write `destination` from `table`, shard by shard; finished units are kept in `home`. Returns its manifest."""
    units = [
        WriteShards(f"{number:05d}", schema, ChangeShard(path, change))
        for number, path in enumerate(table_files(table))
    ]
    return table_from_units(units, destination, home, processes, manifest(table)["bytes"])


def table_from_units(
    units: Sequence[WriteShards], destination: Path, home: Path, processes: int, size: int
) -> dict[str, Any]:
    """Compute units of work and write their shards, in order, as the table `destination`. Returns its manifest.

    `size` is the input size in bytes: a small input is read by one process.
    """
    return table_from_folders(run_units(units, home, processes if size > ALONE_BELOW else 1), destination)


def table_from_folders(folders: Sequence[Path], destination: Path) -> dict[str, Any]:
    """Write the table `destination` from finished folders of `WriteShards`, in order. Returns its manifest."""
    destination.mkdir(parents=True)
    tally = Tally()
    parts = [(folder, read_json(folder / MANIFEST)) for folder in folders]
    entries = [(folder / shard["file"], shard) for folder, part in parts for shard in part["shards"]]
    # an empty table keeps one empty shard for its schema
    kept = [entry for entry in entries if entry[1]["documents"]] or entries[:1]
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


def write_table(destination: Path, schema: pa.Schema, rows: Iterable[Row], tally: Tally) -> dict[str, Any]:
    """Write the table `destination` from one stream of rows, whose producer counts in `tally`. Returns its manifest."""
    destination.mkdir(parents=True)
    shards = write_shards(destination, schema, rows)
    totals = {key: sum(shard[key] for shard in shards) for key in ("documents", "characters", "bytes")}
    whole = {"shards": shards, **totals, **tally.counts()}
    write_json(destination / MANIFEST, whole)
    return whole


def _link(path: Path, other: Path) -> None:
    """Hard-link a file, so that a later call still finds the finished unit in its folder."""
    try:
        os.link(path, other)
    except OSError:  # a file system without links
        shutil.copy2(path, other)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
