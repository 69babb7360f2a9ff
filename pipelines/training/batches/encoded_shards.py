"""Pieces of tables as token ids: each is a piece of work of its own, so that several processes share a corpus.

units/000003/tokens.bin        ids of the piece, an end of document after each document
units/000003/lengths.bin       int64: tokens of each document, its end included
units/000003/word_starts.bin   bool: whether each token begins a word; absent without a segmentation
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.corpora.shards.folders import table_files
from pipelines.errors import DataError
from pipelines.training.batches.word_cache import RememberedWords

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer as Fast

    from pipelines.parts.segmentations import Segmentation

TEXT = "text"
"""The column that is read."""
PIECE_BYTES = 8 * 2**20
"""Bytes of text in a piece, at least a group of rows."""
CHARACTERS = 2**20
"""Of texts that are held and encoded at once, and one text."""
TRIED = 16
"""Texts of a piece that are also encoded whole, to see that cutting them changes nothing."""
TOKENS, LENGTHS, WORD_STARTS = "tokens.bin", "lengths.bin", "word_starts.bin"


@dataclass(frozen=True)
class Extent:
    """Some row groups of a Parquet file."""

    path: Path
    groups: tuple[int, ...]
    bytes: int
    """Of text, about."""

    def texts(self) -> Iterator[list[str]]:
        """The texts in order, a bounded number of characters at a time."""
        import pyarrow.parquet as parquet

        held: list[str] = []
        size = 0
        with parquet.ParquetFile(self.path) as file:
            for batch in file.iter_batches(batch_size=1024, row_groups=self.groups, columns=[TEXT]):
                for text in batch.column(0).to_pylist():
                    held.append(text)
                    size += len(text)
                    if size >= CHARACTERS:
                        yield held
                        held, size = [], 0
        if held:
            yield held


def extents(tables: Sequence[Path]) -> list[Extent]:
    """All of `tables` in pieces. Pieces of several tables alternate, so that any beginning holds the same share of each.

    DataError when a file has no column of text.
    """
    placed = []
    for number, table in enumerate(tables):
        pieces = [piece for file in table_files(table) for piece in _of_file(file)]
        placed += [((at + 0.5) / len(pieces), number, piece) for at, piece in enumerate(pieces)]
    return [piece for _, _, piece in sorted(placed, key=lambda one: one[:2])]


def _of_file(path: Path) -> Iterator[Extent]:
    import pyarrow.parquet as parquet

    known = parquet.read_metadata(path)
    columns = [known.schema.column(number).path for number in range(len(known.schema))]
    if TEXT not in columns:
        raise DataError(
            f"{path}: it has no column {TEXT!r}, but {', '.join(columns)}; run the step that writes it again"
        )
    groups: list[int] = []
    size = 0
    for group in range(known.num_row_groups):
        groups.append(group)
        size += known.row_group(group).column(columns.index(TEXT)).total_uncompressed_size
        if size >= PIECE_BYTES:
            yield Extent(path, tuple(groups), size)
            groups, size = [], 0
    if groups:
        yield Extent(path, tuple(groups), size)


@dataclass(frozen=True)
class EncodedPiece:
    """A unit of work: some texts as ids."""

    name: str
    extent: Extent
    tokenizer: Path
    """A tokenizer.json that neither cuts nor pads."""
    end: int
    """The id that ends a document."""
    kind: str
    """Type of an id."""
    segmentation: Segmentation | None

    def __call__(self, folder: Path) -> None:
        encoder = _encoder(self.tokenizer, self.end, self.kind)
        encoder.begin()
        with (folder / TOKENS).open("wb") as tokens, (folder / LENGTHS).open("wb") as lengths:
            if self.segmentation is None:
                for texts in self.extent.texts():
                    ids, sizes = encoder.encode(texts)
                    tokens.write(ids)
                    lengths.write(sizes.tobytes())
                return
            with (folder / WORD_STARTS).open("wb") as words:
                for texts in self.extent.texts():
                    ids, sizes, begins = encoder.encode_with_words(texts, self.segmentation)
                    tokens.write(ids)
                    lengths.write(sizes.tobytes())
                    words.write(begins.tobytes())


class Encoder:
    """A tokenizer over many texts, each followed by the end of a document."""

    def __init__(self, fast: Fast, end: int, kind: str) -> None:
        self._fast, self._kind = fast, np.dtype(kind)
        self._end = np.asarray([end], dtype=self._kind).tobytes()
        self._words = RememberedWords.of(fast, self._kind.type)
        self._cuts = False

    def begin(self) -> None:
        """Called before each piece: what is done with it hangs on the piece alone."""
        self._cuts = self._words is not None
        self._tried = False

    def encode(self, texts: Sequence[str]) -> tuple[bytes, NDArray[np.int64]]:
        """The ids of `texts` end to end, and the tokens of each."""
        found: list[bytes | None] = [None] * len(texts)
        if self._words is not None and self._cuts:
            found = self._words.encode(texts)
            if not self._tried:
                # a tokenizer of others may have been described rightly and still differ
                whole = self._whole(texts[:TRIED])
                self._cuts = all(ids is None or ids == one for ids, one in zip(found, whole, strict=False))
                self._tried = True
                found = found if self._cuts else [None] * len(texts)
        left = [at for at, ids in enumerate(found) if ids is None]
        for at, ids in zip(left, self._whole([texts[at] for at in left]), strict=True):
            found[at] = ids
        pieces = [ids for ids in found if ids is not None]
        sizes = np.asarray([len(ids) for ids in pieces], dtype=np.int64) // self._kind.itemsize + 1
        return self._end.join([*pieces, b""]), sizes

    def encode_with_words(
        self, texts: Sequence[str], segmentation: Segmentation
    ) -> tuple[bytes, NDArray[np.int64], NDArray[np.bool_]]:
        """The same, and whether each token begins a word of `segmentation`."""
        pieces, sizes, begins = [], [], []
        for text, one in zip(texts, self._fast.encode_batch(list(texts), add_special_tokens=False), strict=True):
            pieces.append(np.asarray(one.ids, dtype=self._kind).tobytes())
            sizes.append(len(one.ids) + 1)
            begins.append(begins_word(one.offsets, segmentation.word_starts(text)))
        return self._end.join([*pieces, b""]), np.asarray(sizes, dtype=np.int64), np.concatenate(begins)

    def _whole(self, texts: Sequence[str]) -> list[bytes]:
        encoded = self._fast.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.asarray(one.ids, dtype=self._kind).tobytes() for one in encoded]


@lru_cache(maxsize=1)
def _encoder(tokenizer: Path, end: int, kind: str) -> Encoder:
    """One for all the pieces that a process is given: the words of one are known in the next."""
    from tokenizers import Tokenizer as Fast

    return Encoder(Fast.from_file(str(tokenizer)), end, kind)


def forget_words() -> None:
    """Let go of what `_encoder` remembers, where pieces were encoded in this process."""
    _encoder.cache_clear()


def begins_word(offsets: Sequence[tuple[int, int]], starts: Sequence[int]) -> NDArray[np.bool_]:
    """Whether each token begins a word, and True for the separator behind them.

    A token begins a word when no other token stands between the word's first character and it; a token that spans the
    beginning of a word begins it too.
    """
    spans = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    # the last word that begins before a token's end
    words = np.searchsorted(np.asarray(starts, dtype=np.int64), spans[:, 1] - 1, side="right")
    begins = np.ones(len(spans) + 1, dtype=np.bool_)
    begins[1:-1] = words[1:] != words[:-1]
    return begins


def read_piece(folder: Path, name: str, kind: Any) -> NDArray[Any]:
    """A file of a finished piece, mapped; empty where the piece has no text."""
    if (folder / name).stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.asarray(np.memmap(folder / name, dtype=kind, mode="r"))
