"""Verdict of deduplication on every text of a dataset: it is kept, or the table that contains it already.

Texts are indexed in order of preference: labelled texts first, then the tables of plain text one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.minhash import Bands
from pipelines.corpora.duplicates.near_duplicates import Sketches, clusters
from pipelines.corpora.duplicates.sketches import PARAGRAPHS_KEYS, PARAGRAPHS_OF_A_TEXT, TEXTS_KEYS
from pipelines.corpora.duplicates.sorted_keys import Numbers, SortedKeys, repeated, sizes

KEPT = 0
"""Verdict: the text is kept."""
NEAR = 128
"""Added to the verdict of a near-duplicate."""
VERDICTS = "verdicts.npy"
COPIES = "copies.npy"


@dataclass(frozen=True)
class DuplicateVerdicts:
    """Unit of work: write `verdicts.npy` with a byte for every text, and the repeated paragraphs of each shard.

    A verdict is 0 for a text that is kept, else 1 + the index in `ends` of the table with the text it repeats, plus 128
    for a near-duplicate. `copies.npy` [m, 2] has the index of each text that repeats one of the first `reported` texts,
    and the index of that text. Takes 5 bytes of memory per text.
    """

    name: str
    shards: tuple[Path, ...]
    """Folders with the sketches of each shard (`SketchedShard`); the first is of the labelled texts and has only their
    keys."""
    firsts: tuple[int, ...]
    """Index of the first text of each shard, and at the end the number of texts."""
    ends: tuple[int, ...]
    """Index after the last text of each table."""
    reported: int
    """Number of evaluation texts, of which copies are reported; they are the first texts."""
    bands: Bands | None
    paragraphs: bool

    def __call__(self, folder: Path) -> None:
        verdicts = np.zeros(self.firsts[-1], np.uint8)
        np.save(folder / COPIES, self._same(verdicts))
        if self.bands:
            self._near(verdicts, self.bands)
        np.save(folder / VERDICTS, verdicts)
        if self.paragraphs:
            self._repeated_paragraphs(folder, verdicts)

    def _same(self, verdicts: NDArray[np.uint8]) -> NDArray[np.int64]:
        copies = [np.empty((0, 2), np.int64)]
        shards = zip(self.shards, self.firsts, strict=False)
        for numbers, starts in repeated([SortedKeys.read(shard, TEXTS_KEYS, first) for shard, first in shards]):
            head = np.repeat(numbers[starts], sizes(starts, len(numbers)))
            others = head != numbers
            head, numbers = head[others], numbers[others]
            verdicts[numbers] = self._table(head)
            reported = (head < self.reported) & (numbers >= self.firsts[1])
            copies.append(np.stack([numbers[reported], head[reported]], axis=1))
        pairs = np.concatenate(copies)
        return pairs[np.argsort(pairs[:, 0], kind="stable")]

    def _near(self, verdicts: NDArray[np.uint8], bands: Bands) -> None:
        plain = self.firsts[1]
        shards = [
            Sketches(shard, first - plain) for shard, first in zip(self.shards[1:], self.firsts[1:-1], strict=True)
        ]
        earliest = clusters(shards, bands, verdicts[plain:] == KEPT)
        (near,) = np.nonzero(earliest != np.arange(len(earliest), dtype=np.uint32))
        verdicts[plain + near] = NEAR + self._table(plain + earliest[near].astype(np.int64))

    def _repeated_paragraphs(self, folder: Path, verdicts: NDArray[np.uint8]) -> None:
        firsts = self.firsts[1:-1]
        shards = [
            SortedKeys.read(shard, PARAGRAPHS_KEYS, first * PARAGRAPHS_OF_A_TEXT)
            for shard, first in zip(self.shards[1:], firsts, strict=True)
        ]
        for numbers, starts in repeated(shards):
            group = np.repeat(np.arange(len(starts)), sizes(starts, len(numbers)))
            kept = verdicts[numbers // PARAGRAPHS_OF_A_TEXT] == KEPT
            numbers, group = numbers[kept], group[kept]
            again = np.append(False, group[1:] == group[:-1])[: len(group)]
            repeats = np.sort(numbers[again])
            owner = np.searchsorted(firsts, repeats // PARAGRAPHS_OF_A_TEXT, side="right") - 1
            for each in np.unique(owner).tolist():
                with (folder / f"paragraphs{each:05d}").open("ab") as file:
                    file.write((repeats[owner == each] - firsts[each] * PARAGRAPHS_OF_A_TEXT).tobytes())

    def _table(self, numbers: Numbers) -> NDArray[np.uint8]:
        return (1 + np.searchsorted(self.ends, numbers, side="right")).astype(np.uint8)


def repeated_paragraphs(verdicts: Path, shard: int) -> dict[int, set[int]]:
    """Paragraphs to remove: index of the text in its shard → positions of the paragraphs in it."""
    file = verdicts / f"paragraphs{shard:05d}"
    positions: dict[int, set[int]] = {}
    if file.exists():
        for number in np.frombuffer(file.read_bytes(), np.int64).tolist():
            positions.setdefault(number // PARAGRAPHS_OF_A_TEXT, set()).add(number % PARAGRAPHS_OF_A_TEXT)
    return positions


def drop_reasons(names: Sequence[str]) -> dict[int, str]:
    """Verdict → reason in words, for every verdict except STAYS; `names` are the names of the tables."""
    same = {1 + index: f"same text in {name}" for index, name in enumerate(names)}
    return same | {NEAR + verdict: f"near copy in {names[verdict - 1]}" for verdict in same}
