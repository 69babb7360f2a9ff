"""Shuffle tables into a pseudo-random order that depends on their texts alone: any prefix is a random sample.

    shards ─▶ scatter: rows of each shard by key, into buckets ─▶ gather: one bucket of all shards, sorted ─▶ shards
              (Arrow files: one batch per bucket for each part of the shard)

The key of a row is a hash of its text and of its copy number, so that its position depends neither on the division into
shards nor on the order of reading, and copies of a text are far from each other. A process has a part of a shard, or
one bucket, in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpora.engines.work import ALONE_BELOW, run_units
from pipelines.corpora.shards.folders import SHARD_BYTES, WriteShards, manifest, table_files, table_from_units
from pipelines.corpora.shards.held_out import REASON as HELD_OUT_REASON
from pipelines.corpora.shards.held_out import key_of as held_out_key
from pipelines.corpora.shards.tables import ROWS_IN_A_GROUP, TEXTS, Row
from pipelines.corpora.shards.tally import Tally
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.corpora.steps.mixture import (
    Copies,
    MeasuredShard,
    Mixture,
    Share,
    key_of,
    mixture_report,
    most_copies,
    shares,
)

ROWS = "rows.arrow"
COUNTS = "counts.json"
LESS_THAN_ONCE = "left out by the mixture"
"""Reason for dropping texts of a source whose requested share is smaller than its size."""
_KEY = "key"
GROUP_BYTES = 16 * 2**20
"""Bytes of rows that are divided into buckets at once: the part of a shard that a process has in memory."""
_ROWS_TAKEN = 1024
_KEY_FIELD = pa.field(_KEY, pa.uint64())
BUCKET_BYTES = SHARD_BYTES * 9 // 10
"""Target size of a bucket in bytes of text: hashing does not fill all equally, and each should become one shard."""


@dataclass(frozen=True)
class ScatteredShard:
    """Unit of work: write copy number `copy` of one shard's rows by bucket, and count them by collection."""

    name: str
    path: Path
    buckets: int
    copies: Mapping[str, Copies]
    """Collection → copies; a collection that is not listed is written once."""
    copy: int = 0
    held_out: int = -1
    """Largest key of the held-out texts, which are not written; −1: none."""
    schema: pa.Schema = TEXTS

    @property
    def keyed(self) -> pa.Schema:
        """The schema with the sort key as its last column."""
        return self.schema.append(_KEY_FIELD)

    def __call__(self, folder: Path) -> None:
        tally, counts, keyed = Tally(), [], self.keyed
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.OSFile(str(folder / ROWS), "wb") as file, pa.ipc.new_file(file, keyed, options=options) as writer:
            for table in self._groups(tally):
                counts += _by_collection(table)
                keys = table[_KEY].to_numpy()
                order = np.argsort(keys, kind="stable")
                edges = np.searchsorted(_bucket(keys[order], self.buckets), np.arange(self.buckets + 1))
                for begin, end in pairwise(edges):
                    part = table.take(pa.array(order[begin:end])).combine_chunks().to_batches()
                    writer.write_batch(part[0] if part else pa.RecordBatch.from_pylist([], keyed))
        write_json(folder / COUNTS, {"collections": counts, **tally.counts()})

    def _groups(self, tally: Tally) -> Iterator[pa.Table]:
        """Yield the shard in parts, each in contiguous memory."""
        waiting: list[pa.RecordBatch] = []
        for batch in self._batches(tally):
            waiting.append(batch)
            if sum(one.nbytes for one in waiting) >= GROUP_BYTES:
                yield pa.Table.from_batches(waiting, self.keyed).combine_chunks()
                waiting = []
        if waiting:
            yield pa.Table.from_batches(waiting, self.keyed).combine_chunks()

    def _batches(self, tally: Tally) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(self.path) as table:
            for batch in table.iter_batches(ROWS_IN_A_GROUP):
                texts, locations, collections = (batch[name].to_pylist() for name in TEXTS.names)
                times = self._times(texts, collections)
                is_held_out = [self.held_out >= 0 and held_out_key(text) <= self.held_out for text in texts]
                written = [
                    number for number in range(len(texts)) if times[number] > self.copy and not is_held_out[number]
                ]
                if self.copy == 0 and len(written) < len(texts):
                    for number in sorted(set(range(len(texts))) - set(written)):
                        tally.drop(
                            HELD_OUT_REASON if is_held_out[number] else LESS_THAN_ONCE, texts[number], locations[number]
                        )
                keys = pa.array([position(texts[number], self.copy) for number in written], pa.uint64())
                yield pa.RecordBatch.from_arrays(
                    [*batch.take(pa.array(written, pa.int64())).columns, keys], schema=self.keyed
                )

    def _times(self, texts: Sequence[str], collections: Sequence[str]) -> NDArray[np.int64]:
        """Number of copies of each text."""
        times = np.ones(len(texts), np.int64)
        for name, copies in self.copies.items():
            here = [number for number, collection in enumerate(collections) if collection == name]
            times[here] = copies.of(np.array([key_of(texts[number]) for number in here], np.uint64))
        return times


@dataclass(frozen=True)
class GatheredBucket:
    """Rows of one bucket of all scattered shards, sorted by key."""

    scattered: tuple[Path, ...]
    bucket: int
    buckets: int
    schema: pa.Schema = TEXTS

    def __call__(self, tally: Tally) -> Iterator[Row]:
        if self.bucket == 0:
            for folder in self.scattered:
                tally.add(read_json(folder / COUNTS))
        parts = []
        for folder in self.scattered:
            with pa.memory_map(str(folder / ROWS)) as file:
                rows = pa.ipc.open_file(file)
                parts += [rows.get_batch(n) for n in range(self.bucket, rows.num_record_batches, self.buckets)]
        # equal texts have equal keys: the other columns decide
        table = pa.Table.from_batches(parts, self.schema.append(_KEY_FIELD)).combine_chunks()
        del parts
        order = pc.sort_indices(table, [(name, "ascending") for name in (_KEY, *TEXTS.names)])
        for begin in range(0, len(order), _ROWS_TAKEN):
            taken = table.select(self.schema.names).take(order.slice(begin, _ROWS_TAKEN))
            yield from zip(*(column.to_pylist() for column in taken.columns), strict=True)


def position(text: str, copy: int) -> int:
    """Sort key of copy number `copy` of a text, 0 to 2^64."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8, salt=copy.to_bytes(4, "big")).digest(), "big")


def shuffle_tables(
    tables: Sequence[Path],
    destination: Path,
    home: Path,
    processes: int,
    mixture: Mixture | None = None,
    held_out: int = -1,
    schema: pa.Schema = TEXTS,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write the rows of `tables` (folders of shards) to `destination`, with the copies that `mixture` requires.

    Texts whose held-out key is at most `held_out` are left out. Unfinished work is in `home`. Returns the manifest, and
    the report of each source.
    """
    files = [file for table in tables for file in table_files(table)]
    size = sum(manifest(table)["bytes"] for table in tables)
    at_once = processes if size > ALONE_BELOW else 1
    copies: dict[str, Copies] = {}
    times = [1] * len(files)
    members: dict[str, Share] | None = None
    if mixture is not None:
        measured = run_units(
            [MeasuredShard(f"{n:05d}", file, held_out) for n, file in enumerate(files)], home / "measured", at_once
        )
        members = shares(mixture, measured)
        copies = {name: share.copies for share in members.values() for name in share.collections}
        times = [most_copies(folder, copies) for folder in measured]
        size = int(size * mixture.settings.size)
    buckets = max(1, -(-size // BUCKET_BYTES))
    scattered = run_units(
        [
            ScatteredShard(f"{number:05d}.{copy}", file, buckets, copies, copy, held_out, schema)
            for number, file in enumerate(files)
            for copy in range(times[number])
        ],
        home / "scattered",
        at_once,
    )
    gather = [GatheredBucket(tuple(scattered), bucket, buckets, schema) for bucket in range(buckets)]
    units = [WriteShards(f"{unit.bucket:05d}", schema, unit) for unit in gather]
    whole = table_from_units(units, destination, home / "gathered", processes, size)
    counts = [count for folder in scattered for count in read_json(folder / COUNTS)["collections"]]
    return whole, mixture_report(counts, members, mixture.settings.unit if mixture else "documents")


def _bucket(keys: NDArray[np.uint64], buckets: int) -> NDArray[np.uint64]:
    """Bucket of every key: equal parts of the 64-bit range, in order."""
    return ((keys >> np.uint64(32)) * np.uint64(buckets)) >> np.uint64(32)


def _by_collection(table: pa.Table) -> list[dict[str, Any]]:
    """Documents and characters of each collection in a table."""
    lengths = pa.table({"collection": table["collection"], "characters": pc.utf8_length(table["text"])})
    counted = lengths.group_by("collection", use_threads=False).aggregate(
        [("characters", "count"), ("characters", "sum")]
    )
    return [
        {"collection": name, "documents": documents, "characters": characters}
        for name, documents, characters in zip(
            *(counted[name].to_pylist() for name in ("collection", "characters_count", "characters_sum")), strict=True
        )
    ]
