"""The rows that stand for a table when it is judged: all of a small one, and of a large one what is wrong and a sample.

Rows that would be answered alike (the same failures, the same bin of lengths, the same kind) are one group. Every group
keeps some rows, and each kept row says for how many documents it stands, so that sums over the kept rows are exact: the
number of documents, of failures of any kind, of texts in each bin.
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
"""A table of at most so many rows is asked about whole."""
GROUPS_EXPECTED = 30
"""Groups of a file, by experience: a bin of lengths each, and few failures."""
SAMPLE = 1000
"""Documents of a table whose language, words and tokens are looked at."""
BEGINNING = 100
"""Characters of a text that are shown."""
SAMPLE_CHARACTERS = 4000
"""Characters of a sampled document that are looked at."""


@dataclass(frozen=True)
class FailureLimits:
    """What makes a row a failure."""

    characters: int
    overlap: float


@dataclass(frozen=True)
class FileEvidence:
    """A unit of work: the rows that stand for one file, the sample, and the file's totals."""

    name: str
    path: Path
    measures: Path
    repeats: tuple[Path, ...]
    number: int
    """Which of the files of `repeats` this is."""
    tables: tuple[str, ...]
    """Names of tables by rank."""
    documents: int
    """Of the whole table."""
    files: int
    """Of the whole table."""
    limits: FailureLimits
    family: TaskFamily | None
    labels: tuple[str, ...]
    copies: tuple[tuple[str, int], ...] = ()
    """How often a mixture repeats the texts of a collection, where it does."""

    def __call__(self, folder: Path) -> None:
        found = Measures.read(self.measures)
        count = len(found.order)
        copies, also = np.ones(count, dtype=np.int32), np.full(count, -1, dtype=np.int8)
        elsewhere = repeats_of_file(self.repeats, self.number)
        copies[elsewhere["row"]], also[elsewhere["row"]] = elsewhere["copies"], elsewhere["also"]
        allowed = np.array([dict(self.copies).get(name, 1) for name in [*found.names, ""]], dtype=np.int32)
        surplus = np.maximum(0, copies - allowed[found.kinds])
        groups = self._groups(found, surplus, also)
        share = -(-SAMPLE * count // max(1, self.documents))
        sampled = np.sort(found.order[:share])
        most = (
            max(1, ROWS_JUDGED_WHOLE // (GROUPS_EXPECTED * self.files)) if self.documents > ROWS_JUDGED_WHOLE else count
        )
        kept, weights = representative_rows(groups, found.order, sampled, most)
        bins = length_bins(found.characters)
        columns: dict[str, list[Any]] = {
            "row_number": kept.tolist(),
            "documents": weights.tolist(),
            "characters": found.characters[kept].tolist(),
            "length_bin": bins[kept].tolist(),
            "copies": copies[kept].tolist(),
            "surplus_copies": surplus[kept].tolist(),
            "also_in": [None if rank < 0 else self.tables[rank] for rank in also[kept].tolist()],
            "overlap": found.overlap[kept].tolist(),
            "kind": [None if code < 0 else found.names[code] for code in found.kinds[kept].tolist()],
        }
        self._write(folder, kept, sampled, columns)
        lengths = np.bincount(bins, minlength=1)
        kinds = np.bincount(found.kinds[found.kinds >= 0], minlength=len(found.names))
        write_json(
            folder / "totals.json",
            {
                "documents": count,
                "characters": int(found.characters.sum(dtype=np.int64)),
                "lengths": {str(number): int(many) for number, many in enumerate(lengths) if many},
                "kinds": dict(zip(found.names, kinds.tolist(), strict=True)),
            },
        )

    def _groups(self, found: Measures, surplus: NDArray[np.int32], also: NDArray[np.int8]) -> NDArray[np.int64]:
        """int64 [N]: the same number for rows that every question answers alike."""
        overlap = found.overlap >= np.float32(self.limits.overlap)
        failures = (
            (found.characters < 1) * 1
            + (found.characters > self.limits.characters) * 2
            + (surplus > 0) * 4
            + (also >= 0) * 8
            + overlap * 16
        )
        # flags take 32 bits, failures 5, bins of lengths 7; a million kinds fit into the rest
        alike = found.flags.astype(np.uint64)
        for part, bits in ((failures, 5), (length_bins(found.characters), 7), (found.kinds + 1, 20)):
            alike = (alike << np.uint64(bits)) | part.astype(np.uint64)
        return np.unique(alike, return_inverse=True)[1].reshape(-1)

    def _write(
        self, folder: Path, kept: NDArray[np.int64], sampled: NDArray[Any], columns: dict[str, list[Any]]
    ) -> None:
        """rows.parquet: `columns` and the beginnings of the rows' own columns; sample.parquet: row, text."""
        schema = pq.read_schema(self.path)
        taken: dict[str, list[Any]] = {name: [] for name in schema.names}
        more: dict[str, list[str | None]] = {"problem": [], "unknown_label": []} if self.family is not None else {}
        known, texts = set(self.labels), []
        chosen = set(sampled.tolist())
        for number, row in self._rows(np.union1d(kept, sampled)):
            if number in chosen:
                texts.append((number, (row.get("text") or "")[:SAMPLE_CHARACTERS]))
            for name, value in row.items():
                taken[name].append(_beginning(value))
            if self.family is not None:
                more["problem"].append(problem := problem_of(self.family, row))
                more["unknown_label"].append(None if problem else unknown_label(self.family, row, known))
        own = {name: pa.array(values, schema.field(name).type) for name, values in taken.items()}
        measured = {name: pa.array(values) for name, values in columns.items() if name not in ("also_in", "kind")}
        words = {name: columns[name] for name in ("also_in", "kind") if name in columns} | more
        strings = {name: pa.array(values, pa.string()) for name, values in words.items()}
        pq.write_table(pa.table(own | measured | strings), folder / "rows.parquet", compression="zstd")
        sample = {"row": pa.array([row for row, _ in texts], pa.int64()), "text": pa.array([text for _, text in texts])}
        pq.write_table(pa.table(sample), folder / "sample.parquet", compression="zstd")

    def _rows(self, wanted: NDArray[np.int64]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of the file with these ascending numbers."""
        begin = 0
        with pq.ParquetFile(self.path) as table:
            for batch in table.iter_batches(batch_size=ROWS_IN_A_GROUP):
                end = begin + batch.num_rows
                here = wanted[(wanted >= begin) & (wanted < end)]
                if len(here):
                    yield from zip(here.tolist(), batch.take(pa.array(here - begin)).to_pylist(), strict=True)
                begin = end


def representative_rows(
    groups: NDArray[np.int64], order: NDArray[np.uint32], sampled: NDArray[np.uint32], most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows [K], ascending, and for how many rows of its group each stands.

    `groups` [N] numbers every row's group. A group keeps its first `most` rows in `order`, and those `sampled`. The weights of
    a group's rows add up to its size.
    """
    by_group = order[np.argsort(groups[order], kind="stable")]
    sizes = np.bincount(groups, minlength=1)
    within = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = np.union1d(by_group[within < most], sampled).astype(np.int64)
    of_kept = groups[kept]
    each, left = np.divmod(sizes, np.maximum(1, np.bincount(of_kept, minlength=len(sizes))))
    weights = each[of_kept]
    present, first = np.unique(of_kept, return_index=True)
    weights[first] += left[present]
    return kept, weights


def _beginning(value: Any) -> Any:
    """What is shown of a value."""
    if isinstance(value, str):
        return " ".join(value[: 2 * BEGINNING].split())[:BEGINNING]
    if isinstance(value, list):
        return [_beginning(item) for item in value[:BEGINNING]]
    return value
