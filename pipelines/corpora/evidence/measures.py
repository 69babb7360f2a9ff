"""Measures of every row of a table, one file at a time: fixed-size numbers on disk, whatever the size of the texts.

    general/00000.parquet ─▶ measures/general-00000/   characters int32, overlap float32, flags uint32, kinds int32
                                                       keys uint64 [N, 2] ascending, order uint32   (34 bytes per row)

Texts that are equal for `deduplicate` have the same key (`Letters.text_keys`). Great Expectations validates these
numbers; the texts are read again only for rows that are shown.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpora.duplicates.overlap import OverlapIndex
from pipelines.corpora.duplicates.shingles import Letters, batches
from pipelines.corpora.shards.columns import column_texts
from pipelines.corpora.shards.tables import ROWS_IN_A_GROUP, read_rows
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.task_families import TaskFamily

PROBLEM = np.uint32(1 << 30)
"""Flag of a row that is no valid example of its family."""
UNKNOWN_LABEL = np.uint32(1 << 31)
"""Flag of a row whose label no training example has."""


@dataclass(frozen=True)
class MeasuredFile:
    """Unit of work: write the measures of one file of a table."""

    name: str
    path: Path
    family: TaskFamily | None
    """Task family of a labelled table; None for plain text."""
    labels: tuple[str, ...]
    """Labels of the training examples."""
    against: tuple[Path, ...]
    """Tables that no text of this file may overlap."""
    words: int
    """Length of the n-grams of which overlap is counted."""
    columns: tuple[tuple[str, str], ...] = ()
    """Declared columns of a named corpus and their types: their texts may overlap as well."""

    def __call__(self, folder: Path) -> None:
        index = _index(self.against, self.words) if self.against else None
        names = pq.read_schema(self.path).names
        known = set(self.labels)
        kinds = list[str | None]()
        # an item takes four bytes in an array, thirty-six in a list
        characters, overlap, flagged = array("i"), array("f"), array("I")
        for row in rows_as_mappings(self.path):
            text = row["text"] if isinstance(row.get("text"), str) else ""
            flags = sum(1 << number for number, name in enumerate(names) if row[name] is None)
            if self.family is not None:
                problem = problem_of(self.family, row)
                flags |= int(PROBLEM) if problem else 0
                flags |= int(UNKNOWN_LABEL) if not problem and unknown_label(self.family, row, known) else 0
                kinds.append(None if problem else kind_of_answer(self.family, row))
            else:
                kinds.append(row.get("collection"))
            characters.append(len(text))
            flagged.append(flags)
        keys = [np.empty((0, 2), np.uint64)]
        for batch in batches(row["text"] or "" for row in rows_as_mappings(self.path, ["text"])):
            letters = Letters.of(batch)
            keys.append(letters.text_keys())
            overlap.extend([0.0] * len(batch) if index is None else index.best(letters)[0].tolist())
        if index is not None and self.columns:
            self._include_columns(index, overlap)
        pairs = np.concatenate(keys)
        order = np.lexsort((pairs[:, 1], pairs[:, 0])).astype(np.uint32)
        np.save(folder / "keys.npy", pairs[order])
        np.save(folder / "order.npy", order)
        for name, values in (("characters", characters), ("overlap", overlap), ("flags", flagged)):
            np.save(folder / f"{name}.npy", np.array(values))
        names_of_kinds = sorted({kind for kind in kinds if kind is not None})
        index_of_kind = {kind: number for number, kind in enumerate(names_of_kinds)}
        codes = np.array([-1 if kind is None else index_of_kind[kind] for kind in kinds], dtype=np.int32)
        np.save(folder / "kinds.npy", codes)
        write_json(folder / "kinds.json", names_of_kinds)

    def _include_columns(self, index: OverlapIndex, overlap: array[float]) -> None:
        """Raise the overlap of every row to that of the texts in its declared columns."""
        columns, owners, position = dict(self.columns), array("q"), 0

        def texts() -> Iterator[str]:
            for number, row in enumerate(rows_as_mappings(self.path, list(columns))):
                for text in column_texts([row[name] for name in columns], columns):
                    owners.append(number)
                    yield text

        for batch in batches(texts()):
            for value in index.best(Letters.of(batch))[0].tolist():
                owner = owners[position]
                overlap[owner] = max(overlap[owner], value)
                position += 1


@dataclass(frozen=True)
class Measures:
    """Measures of the N rows of one file, as `MeasuredFile` wrote them."""

    characters: NDArray[np.int32]
    overlap: NDArray[np.float32]
    flags: NDArray[np.uint32]
    """Bit j: column j is null; bits `PROBLEM` and `UNKNOWN_LABEL`."""
    kinds: NDArray[np.int32]
    """Index into `names`: the kind of answer of a labelled row, the collection of a plain text; −1 for none."""
    names: list[str]
    order: NDArray[np.uint32]
    """Row indices in the order of the keys of their texts: a pseudo-random order, since keys are hashes."""

    @classmethod
    def read(cls, folder: Path) -> Measures:
        """Read the measures in the folder of a unit."""
        arrays = {
            name: np.load(folder / f"{name}.npy") for name in ("characters", "overlap", "flags", "kinds", "order")
        }
        return cls(**arrays, names=read_json(folder / "kinds.json"))


def rows_as_mappings(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield rows of a file as column → value for `columns` (None: all), one row group in memory at a time."""
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=ROWS_IN_A_GROUP, columns=columns):
            names = batch.schema.names
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield dict(zip(names, row, strict=True))


def problem_of(family: TaskFamily, row: Mapping[str, Any]) -> str | None:
    """Problem of a row as its family states it, None for a valid one; null columns have an expectation of their own."""
    if any(row[name] is None for name in family.columns):
        return None
    return family.problem(row)


def unknown_label(family: TaskFamily, row: Mapping[str, Any], known: set[str]) -> str | None:
    """First label of a valid row that is not among the `known`; None when all are."""
    if any(row[name] is None for name in family.columns):
        return None
    return next((label for label in family.labels([row]) if label not in known), None)


def kind_of_answer(family: TaskFamily, row: Mapping[str, Any]) -> str | None:
    """Kind of an answer: its class, the number of its labels, the nearest integer, the types of its entities, or
    whether there is an answer.

    None where answers are free text, as in text generation.
    """
    values = {name: row[name] for name in family.target if row[name] is not None}
    kinds = {name: family.columns[name] for name in values}
    if "label" in values:
        return str(round(values["label"])) if kinds["label"] == "double" else str(values["label"])
    if "labels" in values:
        return f"{len(values['labels'])} labels"
    if "tags" in values:
        return " ".join(sorted({tag[2:] for tag in values["tags"] if tag[:2] in ("B-", "I-")})) or "no entity"
    if "answer" in values:
        return str(values["answer"])
    if "answer_starts" in values:
        return "an answer" if values["answer_starts"] else "no answer"
    return None


@lru_cache(maxsize=2)
def _index(tables: tuple[Path, ...], words: int) -> OverlapIndex:
    """Overlap index of evaluation tables, built once per process."""
    return OverlapIndex([row[0] or "" for table in tables for row in read_rows(table)], words)
