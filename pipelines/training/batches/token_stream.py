"""Concatenated documents as token ids, in memory-mapped files: a corpus takes no memory.

tokens.bin        uint16 or uint32 [N]: ids, an end of document after each document
starts.bin        int64 [D]: position at which each document begins, ascending
counts.bin        int64 [V]: number of occurrences of each id
channel.*.bin     the values of a channel alongside each token (`token_channels`): word starts, languages, boxes
manifest.json     written last: dtype of the ids, the channels, and size and sha256 of every file
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pipelines.lineage.fingerprint import digest_file
from pipelines.training.batches.token_channels import ChannelValues
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOKENS, STARTS, COUNTS = "tokens.bin", "starts.bin", "counts.bin"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class TokenStream:
    """Concatenated documents as token ids."""

    folder: Path
    tokens: NDArray[np.unsignedinteger]
    """[N] ids, an end of document after every document."""
    starts: NDArray[np.int64]
    """[D] position at which each document begins, ascending."""
    counts: NDArray[np.int64]
    """[V] number of occurrences of each id in `tokens`."""
    channels: Mapping[Field, ChannelValues] = field(default_factory=dict)
    """The values alongside the tokens, by the field that a batch holds them in."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Memory-map the stream in `folder`. The files are not verified: `is_whole` does that."""
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))

        def mapped(name: str, kind: str) -> NDArray[Any]:
            # a plain array over the map: np.memmap costs a microsecond at every slice
            return np.asarray(np.memmap(folder / name, dtype=kind, mode="r"))

        channels = [ChannelValues.open(folder, record) for record in manifest["channels"]]
        tokens = mapped(TOKENS, manifest["ids"])
        by_field = {one.channel.field: one for one in channels}
        return cls(folder, tokens, mapped(STARTS, "int64"), mapped(COUNTS, "int64"), by_field)

    def __reduce__(self) -> tuple[Any, ...]:
        # pickled as its folder: another process maps the files itself
        return type(self).open, (self.folder,)

    def windows(self, begins: NDArray[np.int64], width: int) -> NDArray[np.unsignedinteger]:
        """[rows, width]: the tokens from each of `begins` [rows] on; the stream wraps around at its end."""
        if len(begins) and int(begins.max()) + width <= len(self.tokens):
            # a strided view with every window as a row; the selected rows are copied
            shape, strides = (len(self.tokens) - width + 1, width), (self.tokens.itemsize,) * 2
            return np.ndarray(shape, self.tokens.dtype, self.tokens, strides=strides)[begins]
        return self.tokens[self._positions(begins, width)]

    def values(self, name: Field, begins: NDArray[np.int64], width: int) -> NDArray[np.unsignedinteger]:
        """[rows, width, *shape]: the values of the channel `name` alongside `windows`."""
        return self.channels[name].at(self._positions(begins, width))

    def _positions(self, begins: NDArray[np.int64], width: int) -> NDArray[np.int64]:
        result: NDArray[np.int64] = (begins[:, None] + np.arange(width)) % len(self.tokens)
        return result


def is_whole(folder: Path) -> bool:
    """Whether `folder` holds an undamaged stream: every file has the recorded size and digest."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return all(
            (folder / name).stat().st_size == one["bytes"] and digest_file(folder / name) == one["sha256"]
            for name, one in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
