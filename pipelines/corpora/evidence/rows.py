"""Representative rows of a table for validation: all rows of a small table; failures and a sample of a large one.

Rows for which every expectation gives the same result (same failures, same length bin, same kind) form one group. Some
rows of every group are selected, each with a weight: the number of documents it represents. Weighted sums over the
selected rows are therefore exact: the number of documents, of failures of any kind, of texts in each bin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpora.evidence.lengths import length_bins
from pipelines.corpora.evidence.measures import Measures, problem_of, unknown_label
from pipelines.corpora.evidence.repeats import repeats_of_file
from pipelines.corpora.shards.tables import ROWS_IN_A_GROUP
from pipelines.corpora.shards.writing import write_json
from pipelines.task_families import TaskFamily

ROWS_JUDGED_WHOLE = 100_000
"""Tables of at most so many rows are validated in full."""
GROUPS_EXPECTED = 30
"""Typical number of groups in a file: one for each length bin, and few failures."""
SAMPLE = 1000
"""Documents of a table that are sampled for language, words and tokens."""
BEGINNING = 100
"""Characters shown of a text."""
SAMPLE_CHARACTERS = 4000
"""Characters of a sampled document that are analysed."""


@dataclass(frozen=True)
class FailureLimits:
    """Limits beyond which a row is a failure."""

    characters: int
    overlap: float


@dataclass(frozen=True)
class FileEvidence:
    """Unit of work: write the representative rows of one file, its sample and its totals."""

    name: str
    path: Path
    measures: Path
    repeats: tuple[Path, ...]
    number: int
    """Index of this file in `repeats`."""
    tables: tuple[str, ...]
    """Names of tables by rank."""
    documents: int
    """Number of documents in the whole table."""
    files: int
    """Number of files of the whole table."""
    limits: FailureLimits
    family: TaskFamily | None
    labels: tuple[str, ...]
    copies: tuple[tuple[str, int], ...] = ()
    """Collection → number of copies of each text that a mixture writes, where it repeats texts."""

    def __call__(self, folder: Path) -> None:
        measures = Measures.read(self.measures)
        count = len(measures.order)
        copies, also = np.ones(count, dtype=np.int32), np.full(count, -1, dtype=np.int8)
        repeats = repeats_of_file(self.repeats, self.number)
        copies[repeats["row"]], also[repeats["row"]] = repeats["copies"], repeats["also"]
        allowed = np.array([dict(self.copies).get(name, 1) for name in [*measures.names, ""]], dtype=np.int32)
        surplus = np.maximum(0, copies - allowed[measures.kinds])
        groups = self._groups(measures, surplus, also)
        share = -(-SAMPLE * count // max(1, self.documents))
        sampled = np.sort(measures.order[:share])
        most = (
            max(1, ROWS_JUDGED_WHOLE // (GROUPS_EXPECTED * self.files)) if self.documents > ROWS_JUDGED_WHOLE else count
        )
        selected, weights = representative_rows(groups, measures.order, sampled, most)
        bins = length_bins(measures.characters)
        columns: dict[str, list[Any]] = {
            "row_number": selected.tolist(),
            "documents": weights.tolist(),
            "characters": measures.characters[selected].tolist(),
            "length_bin": bins[selected].tolist(),
            "copies": copies[selected].tolist(),
            "surplus_copies": surplus[selected].tolist(),
            "also_in": [None if rank < 0 else self.tables[rank] for rank in also[selected].tolist()],
            "overlap": measures.overlap[selected].tolist(),
            "kind": [None if code < 0 else measures.names[code] for code in measures.kinds[selected].tolist()],
        }
        self._write(folder, selected, sampled, columns)
        lengths = np.bincount(bins, minlength=1)
        kinds = np.bincount(measures.kinds[measures.kinds >= 0], minlength=len(measures.names))
        write_json(
            folder / "totals.json",
            {
                "documents": count,
                "characters": int(measures.characters.sum(dtype=np.int64)),
                "lengths": {str(number): int(many) for number, many in enumerate(lengths) if many},
                "kinds": dict(zip(measures.names, kinds.tolist(), strict=True)),
            },
        )

    def _groups(self, measures: Measures, surplus: NDArray[np.int32], also: NDArray[np.int8]) -> NDArray[np.int64]:
        """int64 [N]: group of each row; every expectation gives the same result for all rows of a group."""
        overlap = measures.overlap >= np.float32(self.limits.overlap)
        failures = (
            (measures.characters < 1) * 1
            + (measures.characters > self.limits.characters) * 2
            + (surplus > 0) * 4
            + (also >= 0) * 8
            + overlap * 16
        )
        # flags take 32 bits, failures 5, length bins 7; a million kinds fit into the rest
        code = measures.flags.astype(np.uint64)
        for part, bits in ((failures, 5), (length_bins(measures.characters), 7), (measures.kinds + 1, 20)):
            code = (code << np.uint64(bits)) | part.astype(np.uint64)
        return np.unique(code, return_inverse=True)[1].reshape(-1)

    def _write(
        self, folder: Path, selected: NDArray[np.int64], sampled: NDArray[Any], columns: dict[str, list[Any]]
    ) -> None:
        """Write rows.parquet (`columns` and the beginnings of the rows' own columns) and sample.parquet (row, text)."""
        schema = pq.read_schema(self.path)
        taken: dict[str, list[Any]] = {name: [] for name in schema.names}
        family_columns: dict[str, list[str | None]] = (
            {"problem": [], "unknown_label": []} if self.family is not None else {}
        )
        known, texts = set(self.labels), []
        sample_rows = set(sampled.tolist())
        for number, row in self._rows(np.union1d(selected, sampled)):
            if number in sample_rows:
                texts.append((number, (row.get("text") or "")[:SAMPLE_CHARACTERS]))
            for name, value in row.items():
                taken[name].append(_beginning(value))
            if self.family is not None:
                family_columns["problem"].append(problem := problem_of(self.family, row))
                family_columns["unknown_label"].append(None if problem else unknown_label(self.family, row, known))
        own = {name: pa.array(values, schema.field(name).type) for name, values in taken.items()}
        measured = {name: pa.array(values) for name, values in columns.items() if name not in ("also_in", "kind")}
        words = {name: columns[name] for name in ("also_in", "kind") if name in columns} | family_columns
        strings = {name: pa.array(values, pa.string()) for name, values in words.items()}
        pq.write_table(pa.table(own | measured | strings), folder / "rows.parquet", compression="zstd")
        sample = {"row": pa.array([row for row, _ in texts], pa.int64()), "text": pa.array([text for _, text in texts])}
        pq.write_table(pa.table(sample), folder / "sample.parquet", compression="zstd")

    def _rows(self, numbers: NDArray[np.int64]) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the rows of the file with these ascending indices."""
        begin = 0
        with pq.ParquetFile(self.path) as table:
            for batch in table.iter_batches(batch_size=ROWS_IN_A_GROUP):
                end = begin + batch.num_rows
                in_batch = numbers[(numbers >= begin) & (numbers < end)]
                if len(in_batch):
                    yield from zip(in_batch.tolist(), batch.take(pa.array(in_batch - begin)).to_pylist(), strict=True)
                begin = end


def representative_rows(
    groups: NDArray[np.int64], order: NDArray[np.uint32], sampled: NDArray[np.uint32], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Select rows [K], ascending, and the weight of each: how many rows of its group it represents.

    `groups` [N] is the group of every row. Selected are the first `most` rows of each group in `order`, and those in
    `sampled`. The weights of a group's selected rows add up to its size.
    """
    by_group = order[np.argsort(groups[order], kind="stable")]
    sizes = np.bincount(groups, minlength=1)
    within = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    selected = np.union1d(by_group[within < most], sampled).astype(np.int64)
    selected_groups = groups[selected]
    each, remainder = np.divmod(sizes, np.maximum(1, np.bincount(selected_groups, minlength=len(sizes))))
    weights = each[selected_groups]
    present, first = np.unique(selected_groups, return_index=True)
    weights[first] += remainder[present]
    return selected, weights


def _beginning(value: Any) -> Any:
    """Beginning of a value, to be shown."""
    if isinstance(value, str):
        return " ".join(value[: 2 * BEGINNING].split())[:BEGINNING]
    if isinstance(value, list):
        return [_beginning(item) for item in value[:BEGINNING]]
    return value
