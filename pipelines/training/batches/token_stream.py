"""Documents as token ids laid end to end, in files that are mapped and not read: a corpus takes no memory.

tokens.bin        uint16 or uint32 [N]: ids, the end of document after each document
starts.bin        int64 [D]: where each document begins, ascending
counts.bin        int64 [V]: how often each id stands among them
word_starts.bin   uint8 [⌈N / 8⌉]: bit n, lowest first, says whether token n begins a word; absent without a segmentation
manifest.json     written last: the type of an id, and size and sha256 of every file
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pipelines.lineage.fingerprint import digest_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOKENS, STARTS, COUNTS, WORD_STARTS = "tokens.bin", "starts.bin", "counts.bin", "word_starts.bin"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class TokenStream:
    """Documents laid end to end."""

    folder: Path
    tokens: NDArray[np.unsignedinteger]
    """[N] ids, an end of document after every document."""
    starts: NDArray[np.int64]
    """[D] where each document begins, ascending."""
    counts: NDArray[np.int64]
    """[V] how often each id stands in `tokens`."""
    word_bits: NDArray[np.uint8] | None = None
    """[⌈N / 8⌉] whether a token begins a word, a bit each, lowest first; None without a segmentation."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The stream in `folder`, mapped. The files are not looked through: `is_whole` does that."""
        known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))

        def mapped(name: str, kind: str) -> NDArray[Any]:
            # a plain array over the map: numpy's own class for maps costs a microsecond at every slice
            return np.asarray(np.memmap(folder / name, dtype=kind, mode="r"))

        words = mapped(WORD_STARTS, "uint8") if WORD_STARTS in known["files"] else None
        tokens = mapped(TOKENS, known["ids"])
        return cls(folder, tokens, mapped(STARTS, "int64"), mapped(COUNTS, "int64"), words)

    def __reduce__(self) -> tuple[Any, ...]:
        # another process maps the files for itself
        return type(self).open, (self.folder,)

    def windows(self, begins: NDArray[np.int64], width: int) -> NDArray[np.unsignedinteger]:
        """[rows, width]: the tokens from each of `begins` [rows] on, as if the stream began again where it ends."""
        if len(begins) and int(begins.max()) + width <= len(self.tokens):
            # every window as a row of one view, of which some are copied as they lie there
            shape, strides = (len(self.tokens) - width + 1, width), (self.tokens.itemsize,) * 2
            return np.ndarray(shape, self.tokens.dtype, self.tokens, strides=strides)[begins]
        return self.tokens[self._places(begins, width)]

    def word_starts(self, begins: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
        """[rows, width]: 1 where a token begins a word, else 0. Only of a stream with a segmentation."""
        assert self.word_bits is not None
        places = self._places(begins, width)
        result: NDArray[np.uint8] = (self.word_bits[places >> 3] >> (places & 7).astype(np.uint8)) & np.uint8(1)
        return result

    def _places(self, begins: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        result: NDArray[np.int64] = (begins[:, None] + np.arange(width)) % len(self.tokens)
        return result


def is_whole(folder: Path) -> bool:
    """Whether `folder` holds a stream as it was written: every file has its size and its digest."""
    try:
        known = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all(
            (folder / name).stat().st_size == one["bytes"] and digest_file(folder / name) == one["sha256"]
            for name, one in known["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
