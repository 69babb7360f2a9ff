"""The verdict on every text of a dataset that deduplication looks at: it stays, or which table holds it already.

Texts are numbered in the order of preference: the labelled ones, then the plain tables one after the other.
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

STAYS = 0
NEAR = 128
"""Added to what a text is the same as when it is only nearly the same."""
VERDICTS = "verdicts.npy"
COPIES = "copies.npy"


@dataclass(frozen=True)
class DuplicateVerdicts:
    """A unit of work: `verdicts.npy` with a byte for every text, and what goes of each shard's paragraphs.

    A verdict is 0 for what stays; else 1 + the place of the table in `ends` that holds the text it repeats, and 128 more when
    it is only nearly the same. `copies.npy` [m, 2] has the number of a text that repeats one of the first `reported` and the
    number of that. 5 bytes of memory a text.
    """

    name: str
    shards: tuple[Path, ...]
    """What `Sketched` wrote of each shard; the first is that of the labelled texts, and has no more than their keys."""
    firsts: tuple[int, ...]
    """The number of the first text of each shard, and how many texts there are."""
    ends: tuple[int, ...]
    """The number after the last text of each table."""
    reported: int
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
            told = (head < self.reported) & (numbers >= self.ends[2])
            copies.append(np.stack([numbers[told], head[told]], axis=1))
        found = np.concatenate(copies)
        return found[np.argsort(found[:, 0], kind="stable")]

    def _near(self, verdicts: NDArray[np.uint8], bands: Bands) -> None:
        plain = self.firsts[1]
        shards = [
            Sketches(shard, first - plain) for shard, first in zip(self.shards[1:], self.firsts[1:-1], strict=True)
        ]
        earliest = clusters(shards, bands, verdicts[plain:] == STAYS)
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
            stays = verdicts[numbers // PARAGRAPHS_OF_A_TEXT] == STAYS
            numbers, group = numbers[stays], group[stays]
            again = np.append(False, group[1:] == group[:-1])[: len(group)]
            found = np.sort(numbers[again])
            owner = np.searchsorted(firsts, found // PARAGRAPHS_OF_A_TEXT, side="right") - 1
            for each in np.unique(owner).tolist():
                with (folder / f"paragraphs{each:05d}").open("ab") as file:
                    file.write((found[owner == each] - firsts[each] * PARAGRAPHS_OF_A_TEXT).tobytes())

    def _table(self, numbers: Numbers) -> NDArray[np.uint8]:
        return (1 + np.searchsorted(self.ends, numbers, side="right")).astype(np.uint8)


def repeated_paragraphs(judged: Path, shard: int) -> dict[int, set[int]]:
    """The paragraphs that go, by the number of the text in its shard and their place in it."""
    file = judged / f"paragraphs{shard:05d}"
    found: dict[int, set[int]] = {}
    if file.exists():
        for number in np.frombuffer(file.read_bytes(), np.int64).tolist():
            found.setdefault(number // PARAGRAPHS_OF_A_TEXT, set()).add(number % PARAGRAPHS_OF_A_TEXT)
    return found


def drop_reasons(names: Sequence[str]) -> dict[int, str]:
    """The reason for every verdict but that a text stays, in words; `names` are those of the tables."""
    same = {1 + place: f"same text in {name}" for place, name in enumerate(names)}
    return same | {NEAR + verdict: f"near copy in {names[verdict - 1]}" for verdict in same}
