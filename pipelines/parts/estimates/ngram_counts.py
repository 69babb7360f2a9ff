"""Counts of all n-grams of a text, in bounded memory: the n-grams of each order are the sorted keys of a table.

The key of an n-gram is (index of its first n − 1 tokens in the table below) · V + (its last token): it fits into 64
bits for any order, and the n-grams of one context are neighbours. Positions of the text are divided into buckets of
consecutive contexts; each bucket is sorted in memory by itself, and the sorted buckets are the table:

    order-3/keys.bin       int64 [n]: ascending
    order-3/counts.bin     int64 [n]: occurrences in the text
    order-3/suffixes.bin   int32 [n]: index of the last two tokens in order-2
    order-3/indices.bin    int32 [N]: for each position of the text, the trigram that ends there; −1 for none

A document begins after an end of document, which is the first token of its n-grams. No n-gram crosses it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.estimates import TokenFile, Workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

CHUNK = 2**20
"""Positions or n-grams that are read at once."""
BUCKET = 2**21
"""Positions of a bucket, approximately; the occurrences of one context are never divided."""
KEYS, COUNTS, SUFFIXES, INDICES, POSITIONS = "keys.bin", "counts.bin", "suffixes.bin", "indices.bin", "positions"
RANKS = "ranks.bin"
LARGEST = 2**31 - 1
"""Most tokens of a text: indices are 32 bits."""


@dataclass(frozen=True)
class NgramTable:
    """The n-grams of one order, memory-mapped."""

    folder: Path

    @property
    def keys(self) -> NDArray[np.int64]:
        return mapped(self.folder / KEYS, "int64")

    @property
    def counts(self) -> NDArray[np.int64]:
        return mapped(self.folder / COUNTS, "int64")

    @property
    def suffixes(self) -> NDArray[np.int32]:
        return mapped(self.folder / SUFFIXES, "int32")


def count_ngrams(text: TokenFile, order: int, workspace: Workspace) -> list[NgramTable]:
    """The tables of orders 2 to `order`. Finished ones in `workspace` are not computed again.

    Raises DataError for a text of more than `LARGEST` tokens.
    """
    size = text.path.stat().st_size // np.dtype(text.kind).itemsize
    if size > LARGEST:
        raise DataError(f"{text.path}: {size:,} tokens; n-grams are counted of at most {LARGEST:,}: set budget.tokens")
    tables: list[NgramTable] = []
    for length in range(2, order + 1):
        folder = workspace.folder / f"order-{length}"
        below = workspace.folder / f"order-{length - 1}" if length > 2 else None
        if not folder.is_dir():
            home = workspace.folder / f"order-{length}-buckets"
            if not (home / POSITIONS).is_dir():
                _divide(text, below, home)
            units = [
                _SortedBucket(f"{number:05d}", path, text, below, length < order)
                for number, path in enumerate(sorted((home / POSITIONS).iterdir()))
            ]
            _join(workspace.run(units, home / "units"), units, folder, size if length < order else 0)
            shutil.rmtree(home)
        if below is not None:
            (below / INDICES).unlink(missing_ok=True)  # read by this order only
        tables.append(NgramTable(folder))
    return tables


def require_ngrams(text: TokenFile, order: int) -> None:
    """Raise DataError for a text without tokens, of a single word, or whose documents are all shorter than `order`."""
    if not sum(text.counts):
        raise DataError(f"{text.path}: no tokens to count")
    words = sum(1 for token, count in enumerate(text.counts) if count and token not in {text.end, *text.special})
    if words < 2:
        raise DataError(
            f"{text.path}: the text has {words or 'no'} word{'' if words == 1 else 's'} of the vocabulary, and n-grams "
            "need two; give more text, or lower the tokenizer's min_count"
        )
    if order > 2:
        # an end of document is the first token of the next document's n-grams, and the last of its own
        tokens = text.tokens
        ends = np.concatenate([np.flatnonzero(tokens[part] == text.end) + part.start for part in chunks(len(tokens))])
        longest = int(np.diff(ends, prepend=-1).max(initial=0)) + 1
        if longest < order:
            raise DataError(
                f"backbone.order: {order} is above the length of the text: its longest document has {longest} tokens "
                "with begin and end; lower the order, or give longer documents"
            )


def mapped(path: Path, kind: str) -> NDArray[Any]:
    """A file as an array; memory-mapped unless it is empty, and never written to."""
    if path.stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.asarray(np.memmap(path, dtype=kind, mode="c"))


def chunks(size: int) -> Iterator[slice]:
    """Slices of CHUNK that cover `size` values."""
    for begin in range(0, size, CHUNK):
        yield slice(begin, min(begin + CHUNK, size))


def _contexts(text: TokenFile, below: Path | None, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """[n] index of the context of the token at each of `positions`; −1 where a document's end is inside it."""
    tokens = text.tokens
    before = np.maximum(positions - 1, 0)
    if below is None:  # the text itself begins after an end of document
        return np.where(positions > 0, tokens[before].astype(np.int64), text.end)
    contexts = np.where(positions > 0, mapped(below / INDICES, "int32")[before].astype(np.int64), -1)
    # an end that closes the context is the end of a document, and not its beginning
    contexts[tokens[before] == text.end] = -1
    return contexts


def _divide(text: TokenFile, below: Path | None, home: Path) -> None:
    """Write the positions of the text at which an n-gram ends into one file for each bucket of contexts."""
    occurrences = np.asarray(text.counts) if below is None else mapped(below / COUNTS, "int64")
    bucket_of = (np.maximum(np.cumsum(occurrences) - 1, 0) // BUCKET).astype(np.int32)
    temporary = home / f".{POSITIONS}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    size = len(text.tokens)
    files = {}
    for part in chunks(size):
        positions = np.arange(part.start, part.stop, dtype=np.int64)
        contexts = _contexts(text, below, positions)
        inside = contexts >= 0
        positions, buckets = positions[inside], bucket_of[contexts[inside]]
        order = np.argsort(buckets, kind="stable")
        numbers, begins = np.unique(buckets[order], return_index=True)
        for number, chosen in zip(numbers.tolist(), np.split(positions[order], begins[1:]), strict=True):
            if number not in files:
                files[number] = (temporary / f"{number:08d}.bin").open("wb")
            chosen.astype(np.int32).tofile(files[number])
    for file in files.values():
        file.close()
    temporary.rename(home / POSITIONS)


def sorting_order(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64 [n]: the indices that sort non-negative `keys` [n], equal ones in their order.

    Where both fit into 63 bits, a key and its index are sorted as one number: numpy sorts numbers several times faster
    than the indices of numbers.
    """
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    least, bits = int(keys.min()), len(keys).bit_length()
    if (int(keys.max()) - least).bit_length() + bits > 63:
        return np.argsort(keys, kind="stable")
    packed = ((keys - least) << bits) | np.arange(len(keys))
    packed.sort()
    return np.asarray(packed & ((1 << bits) - 1))


@dataclass(frozen=True)
class _SortedBucket:
    """Sort one bucket: its distinct n-grams, and the rank of that at each of its positions."""

    name: str
    positions: Path
    text: TokenFile
    below: Path | None
    ranked: bool
    """Whether the order above needs the n-gram of every position."""

    def __call__(self, folder: Path) -> None:
        positions = np.fromfile(self.positions, dtype=np.int32).astype(np.int64)
        tokens = self.text.tokens
        keys = _contexts(self.text, self.below, positions) * self.text.vocabulary_size + tokens[positions]
        order = sorting_order(keys)
        keys = keys[order]
        new = np.empty(len(keys), dtype=np.bool_)
        new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        first = np.flatnonzero(new)
        keys[first].tofile(folder / KEYS)
        np.diff(np.append(first, len(keys))).tofile(folder / COUNTS)
        where = positions[order[first]]
        # any position of an n-gram shows its last tokens
        suffixes = tokens[where] if self.below is None else mapped(self.below / INDICES, "int32")[where]
        suffixes.astype(np.int32).tofile(folder / SUFFIXES)
        if self.ranked:
            ranks = np.empty(len(keys), dtype=np.int32)
            ranks[order] = np.cumsum(new, dtype=np.int32) - 1
            ranks.tofile(folder / RANKS)


def _join(done: Sequence[Path], units: Sequence[_SortedBucket], folder: Path, size: int) -> None:
    """Concatenate sorted buckets into `folder`, with the n-gram of each of `size` positions."""
    temporary = folder.with_name(f".{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    indices = np.memmap(temporary / INDICES, dtype="int32", mode="w+", shape=(size,)) if size else None
    if indices is not None:
        indices[:] = -1
    total = 0
    with (
        (temporary / KEYS).open("wb") as keys,
        (temporary / COUNTS).open("wb") as counts,
        (temporary / SUFFIXES).open("wb") as suffixes,
    ):
        for unit, one in zip(units, done, strict=True):
            for name, file in ((KEYS, keys), (COUNTS, counts), (SUFFIXES, suffixes)):
                with (one / name).open("rb") as part:
                    shutil.copyfileobj(part, file, 2**22)
            if indices is not None:
                indices[np.fromfile(unit.positions, dtype=np.int32)] = total + np.fromfile(one / RANKS, dtype=np.int32)
            total += (one / KEYS).stat().st_size // 8
    if indices is not None:
        indices.flush()
    temporary.rename(folder)
