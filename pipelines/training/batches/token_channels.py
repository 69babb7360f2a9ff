"""The channels of a token stream: their files, their values at any positions, and how rows frame them.

channel.boxes.bin         uint16 [N, 4]: a value for each token, in the smallest unsigned type that holds the channel's
channel.word_starts.bin   uint8 [⌈N / 8⌉]: of a channel with two values, one bit per token, lowest first
channel.regions.bin       float32 [N, 512]: a vector for each token
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray


def file_of(channel: Channel) -> str:
    """Name of the file with the values of `channel`."""
    return f"channel.{channel.name}.bin"


def kind_of(channel: Channel) -> str:
    """dtype in which a unit of work writes the values: the smallest unsigned integer that holds them, or float32 for
    vectors."""
    return channel.kind if channel.size is None else str(np.min_scalar_type(channel.size - 1))


def is_bits(channel: Channel) -> bool:
    """Whether a stream holds the channel as one bit per token."""
    return channel.size == 2 and channel.shape == ()


@dataclass(frozen=True)
class ChannelValues:
    """The values of one channel along a stream."""

    channel: Channel
    stored: NDArray[Any]
    """[N, *shape], or uint8 [⌈N / 8⌉] for a channel of bits."""

    @classmethod
    def open(cls, folder: Path, record: Mapping[str, Any]) -> ChannelValues:
        """Memory-map the channel of `record`, an entry of `channel_records`."""
        edges = record["edges"]
        channel = Channel(
            record["name"],
            record["size"],
            tuple(record["shape"]),
            record["padding"],
            None if edges is None else (edges[0], edges[1]),
        )
        kind = "uint8" if is_bits(channel) else kind_of(channel)
        # a plain array over the map: np.memmap costs a microsecond at every slice
        stored = np.asarray(np.memmap(folder / file_of(channel), dtype=kind, mode="r"))
        return cls(channel, stored if is_bits(channel) else stored.reshape(-1, *channel.shape))

    def at(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """[…, *shape]: the values of the tokens at `positions` […]."""
        if not is_bits(self.channel):
            return self.stored[positions]
        bits: NDArray[np.uint8] = self.stored[positions >> 3] >> (positions & 7).astype(np.uint8)
        return bits & np.uint8(1)

    def framed(self, values: NDArray[Any], before: int, after: int) -> NDArray[Any]:
        """[R, before + W + after, *shape]: rows of `values` [R, W, *shape] with those of their special tokens."""
        end = before + values.shape[1]
        rows = np.empty((len(values), end + after, *self.channel.shape), dtype=self.channel.kind)
        rows[:, before:end] = values
        edges = self.channel.edges
        rows[:, :before] = values[:, :1] if edges is None else edges[0]
        rows[:, end:] = values[:, -1:] if edges is None else edges[1]
        return rows

    def packed(self, size: int, source: NDArray[np.int64], target: NDArray[np.int64], frames: Frames) -> NDArray[Any]:
        """[size, *shape]: flattened rows with the values of the tokens `source` of the stream at `target`,
        those of the special tokens of `frames`, and padding elsewhere."""
        rows = np.full((size, *self.channel.shape), self.channel.padding, dtype=self.channel.kind)
        rows[target] = self.at(source)
        edges = self.channel.edges
        for specials, nearest, number in ((frames.before, frames.first, 0), (frames.after, frames.last, 1)):
            for special in specials:
                rows[special] = rows[nearest] if edges is None else edges[number]
        return rows


@dataclass(frozen=True)
class Frames:
    """Special tokens around the segments of packed rows, as positions in the flattened rows."""

    before: Sequence[NDArray[np.int64]]
    """int64 [S] for each special token before a segment."""
    after: Sequence[NDArray[np.int64]]
    first: NDArray[np.int64]
    """int64 [S]: the first token of each segment."""
    last: NDArray[np.int64]


def channel_records(channels: Sequence[Channel]) -> list[dict[str, Any]]:
    """Descriptions of `channels` for a manifest."""
    return [asdict(channel) for channel in channels]
