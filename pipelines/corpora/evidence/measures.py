"""What is measured of every row of a table, one file at a time: numbers that fit on disk whatever the texts' size.

    general/00000.parquet ─▶ measures/general-00000/   characters int32, overlap float32, flags uint32, kinds int32
                                                       keys uint64 [N, 2] ascending, order uint32   (34 bytes a row)

A key is the same for texts that are the same to `deduplicate` (`Letters.text_keys`). Great Expectations asks about these
numbers; the texts are read again only where a row is shown.
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
from pipelines.corpora.shards.tables import ROWS_IN_A_GROUP, read_rows
from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.task_families import TaskFamily

PROBLEM = np.uint32(1 << 30)
"""Flag of a row that is no example of its family."""
UNKNOWN_LABEL = np.uint32(1 << 31)
"""Flag of a row whose label training does not know."""


@dataclass(frozen=True)
class MeasuredFile:
    """A unit of work: the measures of one file of a table."""

    name: str
    path: Path
    family: TaskFamily | None
    """None for plain text."""
    labels: tuple[str, ...]
    """What training knows."""
    against: tuple[Path, ...]
    """The tables that no text here may overlap."""
    words: int
    """Length of the runs of words that overlap is counted in."""

    def __call__(self, folder: Path) -> None:
        index = _index(self.against, self.words) if self.against else None
        names = pq.read_schema(self.path).names
        known = set(self.labels)
        kinds = list[str | None]()
        # of an array an item takes four bytes, of a list thirty-six
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
        pairs = np.concatenate(keys)
        order = np.lexsort((pairs[:, 1], pairs[:, 0])).astype(np.uint32)
        np.save(folder / "keys.npy", pairs[order])
        np.save(folder / "order.npy", order)
        for name, values in (("characters", characters), ("overlap", overlap), ("flags", flagged)):
            np.save(folder / f"{name}.npy", np.array(values))
        names_of_kinds = sorted({kind for kind in kinds if kind is not None})
        place = {kind: number for number, kind in enumerate(names_of_kinds)}
        codes = np.array([-1 if kind is None else place[kind] for kind in kinds], dtype=np.int32)
        np.save(folder / "kinds.npy", codes)
        write_json(folder / "kinds.json", names_of_kinds)


@dataclass(frozen=True)
class Measures:
    """What `MeasuredFile` wrote of the N rows of one file."""

    characters: NDArray[np.int32]
    overlap: NDArray[np.float32]
    flags: NDArray[np.uint32]
    """Bit j: column j is null; `PROBLEM`; `UNKNOWN_LABEL`."""
    kinds: NDArray[np.int32]
    """Numbers of `names`: the kind of a labelled row's answer, the collection of a plain text; −1 where there is none."""
    names: list[str]
    order: NDArray[np.uint32]
    """Row numbers in the order of their texts' keys, which is as good as a random one."""

    @classmethod
    def read(cls, folder: Path) -> Measures:
        """The measures in a unit's folder."""
        arrays = {
            name: np.load(folder / f"{name}.npy") for name in ("characters", "overlap", "flags", "kinds", "order")
        }
        return cls(**arrays, names=read_json(folder / "kinds.json"))


def rows_as_mappings(path: Path, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a file by the names of its columns (None: all), one group in memory at a time."""
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=ROWS_IN_A_GROUP, columns=columns):
            names = batch.schema.names
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield dict(zip(names, row, strict=True))


def problem_of(family: TaskFamily, row: Mapping[str, Any]) -> str | None:
    """What the family says is wrong with a row; a column that is null altogether has a question of its own."""
    if any(row[name] is None for name in family.columns):
        return None
    return family.problem(row)


def unknown_label(family: TaskFamily, row: Mapping[str, Any], known: set[str]) -> str | None:
    """A label of a sound row that is not among the `known`."""
    if any(row[name] is None for name in family.columns):
        return None
    return next((label for label in family.labels([row]) if label not in known), None)


def kind_of_answer(family: TaskFamily, row: Mapping[str, Any]) -> str | None:
    """An answer as one of few: a class, the nearest whole number, the kinds of entities, whether there is an answer.

    None where answers are open, as in text generation.
    """
    values = {name: row[name] for name in family.target if row[name] is not None}
    kinds = {name: family.columns[name] for name in values}
    if "label" in values:
        return str(round(values["label"])) if kinds["label"] == "double" else str(values["label"])
    if "tags" in values:
        return " ".join(sorted({tag[2:] for tag in values["tags"] if tag[:2] in ("B-", "I-")})) or "no entity"
    if "answer" in values:
        return str(values["answer"])
    if "answer_starts" in values:
        return "an answer" if values["answer_starts"] else "no answer"
    return None


@lru_cache(maxsize=2)
def _index(tables: tuple[Path, ...], words: int) -> OverlapIndex:
    """The texts of evaluation tables, put in order once a process."""
    return OverlapIndex([row[0] or "" for table in tables for row in read_rows(table)], words)
