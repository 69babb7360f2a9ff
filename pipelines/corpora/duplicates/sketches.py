"""Sketches of a shard for deduplication: sorted keys of texts and paragraphs, and MinHash signatures, on disk."""

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
"""Paragraphs of a text that are compared; the index of a paragraph is its text's · this + its position in the text."""


@dataclass(frozen=True)
class SketchedShard:
    """Unit of work: write the sketches of one shard of `documents` texts.

    They take 24 bytes per text, with `bands` also 2 · `bands.values` + 16 · `bands.bands` bytes per text, and 24 bytes
    per paragraph of at least `paragraphs` characters.
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
                # appended, not memory-mapped: mapped pages count as memory of the process
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
                    batch_signatures = signatures(hashes, ends, bands.values)
                    known[some] = np.diff(ends) > 0
                    values.write(batch_signatures.astype("<u2").tobytes())
                    for part, column in zip(parts, bands.keys(batch_signatures).T, strict=True):
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
            long_enough = [
                ((number + each) * PARAGRAPHS_OF_A_TEXT + position, part)
                for each, text in enumerate(batch)
                for position, part in enumerate(paragraphs(text)[:PARAGRAPHS_OF_A_TEXT])
                if len(part) >= least
            ]
            number += len(batch)
            keys.append(Letters.of([part for _, part in long_enough]).text_keys())
            numbers.append(np.array([index for index, _ in long_enough], np.int64))
        write_sorted(folder, PARAGRAPHS_KEYS, np.concatenate(keys), np.concatenate(numbers))

    def _texts(self) -> Iterator[str]:
        return (row[0] for row in read_rows(self.path))
