"""General text that is never trained on, to measure forgetting in later stages.

One percent of the general corpus, one megabyte at most: the texts with the smallest hashes, so that the selection does
not depend on order or on what is trained. They are cleaned, deduplicated and decontaminated like the rest. Nothing is
held out of a corpus under one mebibyte: one percent of it would be too little to measure anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.corpora.engines.work import ALONE_BELOW, run_units
from pipelines.corpora.shards.folders import manifest, table_files
from pipelines.corpora.shards.tables import ROWS_IN_A_GROUP, TEXTS, Row

HELD_OUT = "general_heldout"
"""Name of the table."""
SHARE = 0.01
"""Held-out share of the general corpus, in bytes."""
MOST_BYTES = 10**6
LEAST_BYTES = 2**20
"""Minimum size in bytes of a general corpus of which text is held out."""
REASON = "held out to measure forgetting"
_PURPOSE = b"held out"
_KEY = "key"
_ROWS = "rows.parquet"
_KEYED = TEXTS.append(pa.field(_KEY, pa.uint64()))


def key_of(text: str) -> int:
    """64-bit hash, used for nothing else, by which texts are held out."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=_PURPOSE).digest(), "big")


@dataclass(frozen=True)
class HeldOutCandidates:
    """Unit of work: the texts of one shard with the smallest keys, as many as the whole budget allows."""

    name: str
    path: Path
    budget: int

    def __call__(self, folder: Path) -> None:
        keys: list[int] = []
        sizes: list[int] = []
        with pq.ParquetFile(self.path) as table:
            for batch in table.iter_batches(ROWS_IN_A_GROUP, columns=["text"]):
                for text in batch["text"].to_pylist():
                    keys.append(key_of(text))
                    sizes.append(len(text.encode()))
            order = np.argsort(np.asarray(keys, np.uint64), kind="stable")
            before = np.cumsum(np.asarray(sizes, np.int64)[order]) - np.asarray(sizes, np.int64)[order]
            chosen = order[before < self.budget]
            taken: list[pa.Table] = []
            first = 0
            for batch in table.iter_batches(ROWS_IN_A_GROUP, columns=TEXTS.names):
                inside = np.sort(chosen[(chosen >= first) & (chosen < first + len(batch))])
                keyed = pa.array([keys[number] for number in inside], pa.uint64())
                here = pa.Table.from_batches([batch], TEXTS).take(pa.array(inside - first, pa.int64()))
                taken.append(here.append_column(_KEYED.field(_KEY), keyed))
                first += len(batch)
        pq.write_table(pa.concat_tables([_KEYED.empty_table(), *taken]), folder / _ROWS)


def held_out(table: Path, home: Path, processes: int) -> tuple[int, list[Row]]:
    """Largest key of the texts of `table`, a folder of shards, that are held out (−1: none), and their rows by key.

    Finished units are kept in `home`. Equal texts have the same key and are returned as one row.
    """
    size = int(manifest(table)["bytes"])
    if size < LEAST_BYTES:
        return -1, []
    budget = min(MOST_BYTES, int(size * SHARE))
    units = [HeldOutCandidates(f"{number:05d}", path, budget) for number, path in enumerate(table_files(table))]
    folders = run_units(units, home, processes if size > ALONE_BELOW else 1)
    kept = _KEYED.empty_table()
    # one shard at a time: the candidates of all shards of a large corpus do not fit into memory
    for folder in folders:
        kept = _smallest(pa.concat_tables([kept, pq.read_table(folder / _ROWS)]), budget)
    if not len(kept):
        return -1, []
    return kept[_KEY][-1].as_py(), list(zip(*(kept[name].to_pylist() for name in TEXTS.names), strict=True))


def _smallest(rows: pa.Table, budget: int) -> pa.Table:
    """Rows with the smallest keys, each key once, up to `budget` bytes of text."""
    rows = rows.sort_by([(name, "ascending") for name in (_KEY, *TEXTS.names)])
    keys = rows[_KEY].to_numpy()
    rows = rows.filter(pa.array(np.append(True, keys[1:] != keys[:-1])[: len(keys)]))
    sizes = pc.binary_length(rows["text"]).to_numpy().astype(np.int64)
    return rows.filter(pa.array(np.cumsum(sizes) - sizes < budget)).combine_chunks()
