"""What deduplication needs to know of every shard: keys of its texts and paragraphs, and signatures, in order, on disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.format import write_array_header_1_0

from pipelines.corpora.duplicates.minhash import Bands, signatures
from pipelines.corpora.duplicates.paragraphs import paragraphs
from pipelines.corpora.duplicates.shingles import Letters, Shingle, batches
from pipelines.corpora.duplicates.sorted_keys import write_sorted
from pipelines.corpora.shards.tables import read_rows

TEXTS_KEYS = "texts"
PARAGRAPHS_KEYS = "paragraphs"
PARAGRAPHS_OF_A_TEXT = 2**20
"""More are not looked at: the number of a paragraph is its text's, times this, and its place."""


@dataclass(frozen=True)
class SketchedShard:
    """A unit of work: what one shard of `documents` texts says of them.

    Written are 24 bytes a text and, where near copies are sought, twice `bands.values` and 16 for each band, and 24 a
    paragraph of at least `paragraphs` characters.
    """

    name: str
    path: Path
    documents: int
    shingle: Shingle
    bands: Bands | None
    paragraphs: int | None

    def __call__(self, folder: Path) -> None:
        bands, number = self.bands, 0
        keys = np.empty((self.documents, 2), np.uint64)
        known = np.zeros(self.documents, np.bool_)
        with ExitStack() as stack:
            if bands:
                # appended to, not mapped: mapped pages count as memory of the process
                values = stack.enter_context((folder / "signatures.npy").open("wb"))
                header = {"descr": "<u2", "fortran_order": False, "shape": (self.documents, bands.values)}
                write_array_header_1_0(values, header)
                parts = [stack.enter_context((folder / f"band{band}").open("wb")) for band in range(bands.bands)]
            for batch in batches(self._texts()):
                letters = Letters.of(batch)
                some = slice(number, number + len(batch))
                number += len(batch)
                keys[some] = letters.text_keys()
                if bands:
                    hashes, ends = letters.shingles(self.shingle, shorter=True)
                    found = signatures(hashes, ends, bands.values)
                    known[some] = np.diff(ends) > 0
                    values.write(found.astype("<u2").tobytes())
                    for part, column in zip(parts, bands.keys(found).T, strict=True):
                        part.write(column.tobytes())
        write_sorted(folder, TEXTS_KEYS, keys, np.arange(self.documents))
        for band in range(bands.bands if bands else 0):
            raw = folder / f"band{band}"
            write_sorted(folder, raw.name, np.fromfile(raw, np.uint64)[known, None], np.flatnonzero(known))
            raw.unlink()
        if self.paragraphs:
            self._write_paragraphs(folder, self.paragraphs)

    def _write_paragraphs(self, folder: Path, least: int) -> None:
        keys, numbers = [np.empty((0, 2), np.uint64)], [np.empty(0, np.int64)]
        number = 0
        for batch in batches(self._texts()):
            places = [
                ((number + each) * PARAGRAPHS_OF_A_TEXT + place, part)
                for each, text in enumerate(batch)
                for place, part in enumerate(paragraphs(text)[:PARAGRAPHS_OF_A_TEXT])
                if len(part) >= least
            ]
            number += len(batch)
            keys.append(Letters.of([part for _, part in places]).text_keys())
            numbers.append(np.array([place for place, _ in places], np.int64))
        write_sorted(folder, PARAGRAPHS_KEYS, np.concatenate(keys), np.concatenate(numbers))

    def _texts(self) -> Iterator[str]:
        return (row[0] for row in read_rows(self.path))
