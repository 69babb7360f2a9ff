"""Mixtures: how often every text of a corpus is written, so that its sources have the requested proportions.

A source requested e times is written floor(e) times, and a remainder of its texts once more: those with the smallest
hashes, so that the choice does not depend on order, and a larger share includes the texts of a smaller one. Shares are
met to within one document per source.

Global state is twelve bytes per document on disk, and 512 KiB per member in memory.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pipelines.corpora.settings.mixture import MixtureSettings
from pipelines.corpora.shards.held_out import key_of as held_out_key
from pipelines.corpora.shards.tables import ROWS_IN_A_GROUP
from pipelines.corpora.shards.writing import read_json, write_json

_PURPOSE = b"mixture"
_HIGH_BITS = 16
_AMOUNTS: dict[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "documents": np.ones_like,
    "characters": np.asarray,
}
"""Unit of a mixture → function from lengths of texts to how much each text counts."""
COUNTS = "counts.json"


@dataclass(frozen=True)
class Copies:
    """Copies of the texts of a collection: each is written `whole` times, once more if its key is at most `last`."""

    whole: int = 1
    last: int = -1

    @property
    def most(self) -> int:
        """Largest number of copies of one text."""
        return self.whole + (self.last >= 0)

    def of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[N] Number of copies of the texts with these keys."""
        more = keys <= np.uint64(self.last) if self.last >= 0 else np.zeros(len(keys), bool)
        return self.whole + more.astype(np.int64)


@dataclass
class Share:
    """A member of a mixture: its size, its requested share, and the copies that give that share."""

    collections: tuple[str, ...]
    documents: int = 0
    characters: int = 0
    requested: float | None = None
    """Requested share of the mixture, 0 to 1; None: its natural share."""
    copies: Copies = field(default_factory=Copies)


@dataclass(frozen=True)
class Mixture:
    """Mixture of a corpus, and the collections of each of its members."""

    settings: MixtureSettings
    members: Mapping[str, Sequence[str]]


def key_of(text: str) -> int:
    """64-bit hash, used for nothing else, that decides which texts of a source are written once more."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=_PURPOSE).digest(), "big")


@dataclass(frozen=True)
class MeasuredShard:
    """Unit of work: write the keys and lengths of one shard's texts by collection, as arrays."""

    name: str
    path: Path
    held_out: int = -1
    """Largest key of the held-out texts, which are not counted; −1: none."""

    def __call__(self, folder: Path) -> None:
        collections: dict[str, tuple[array[int], array[int]]] = {}
        with pq.ParquetFile(self.path) as table:
            for batch in table.iter_batches(ROWS_IN_A_GROUP, columns=["text", "collection"]):
                for text, collection in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    if self.held_out >= 0 and held_out_key(text) <= self.held_out:
                        continue
                    keys, lengths = collections.setdefault(collection, (array("Q"), array("L")))
                    keys.append(key_of(text))
                    lengths.append(len(text))
        counts = {}
        for number, (collection, (keys, lengths)) in enumerate(collections.items()):
            np.save(folder / f"{number}.keys.npy", np.array(keys, np.uint64))
            np.save(folder / f"{number}.lengths.npy", np.array(lengths, np.uint32))
            counts[collection] = {"number": number, "documents": len(keys), "characters": sum(lengths)}
        write_json(folder / COUNTS, counts)


def shares(mixture: Mixture, measured: Sequence[Path]) -> dict[str, Share]:
    """Members of a mixture with their copies, from the folders of `MeasuredShard`; without empty members."""
    settings = mixture.settings
    members = {name: Share(tuple(collections)) for name, collections in mixture.members.items()}
    of_collection = {name: share for share in members.values() for name in share.collections}
    for folder in measured:
        for collection, counts in read_json(folder / COUNTS).items():
            of_collection[collection].documents += counts["documents"]
            of_collection[collection].characters += counts["characters"]
    members = {name: share for name, share in members.items() if share.documents}
    sizes: dict[str, int] = {name: getattr(share, settings.unit) for name, share in members.items()}
    proportions = requested_shares(settings, sizes)
    for name, share in members.items():
        target = proportions[name] * settings.size * sum(sizes.values())
        whole = int(target // sizes[name])
        left = round(target - whole * sizes[name])
        share.requested = proportions[name]
        share.copies = Copies(whole, last_key(measured, share.collections, settings.unit, left) if left else -1)
    return members


def most_copies(measured: Path, copies: Mapping[str, Copies]) -> int:
    """Largest number of copies of a text of one shard, at least 1."""
    return max([1, *(copies[collection].most for collection in read_json(measured / COUNTS))])


def mixture_report(
    counts: Sequence[Mapping[str, Any]], members: Mapping[str, Share] | None, unit: str
) -> list[dict[str, Any]]:
    """Report of each member of a mixture (None: each collection, unmixed): its size, and what was written of it.

    `counts` are the documents and characters written of each collection. `epochs` is how many times a source was
    written: above 1 it is repeated, below 1 part of it is left out.
    """
    written: dict[str, Counter[str]] = defaultdict(Counter)
    for count in counts:
        written[count["collection"]].update(documents=count["documents"], characters=count["characters"])
    if members is None:
        members = {name: Share((name,), count["documents"], count["characters"]) for name, count in written.items()}
    whole = sum(count[unit] for count in written.values())
    report = []
    for name in sorted(members):
        share = members[name]
        outcome = sum((written[collection] for collection in share.collections), Counter())
        report.append(
            {
                "source": name,
                "collections": sorted(share.collections),
                "documents": share.documents,
                "characters": share.characters,
                "written_documents": outcome["documents"],
                "written_characters": outcome["characters"],
                "unit": unit,
                "share_asked": share.requested,
                "share": outcome[unit] / whole if whole else 0.0,
                "epochs": outcome[unit] / max(1, getattr(share, unit)),
                "most_copies": share.copies.most,
            }
        )
    return report


def requested_shares(mixture: MixtureSettings, sizes: Mapping[str, int]) -> dict[str, float]:
    """Requested share of every member, by its weight or by p ∝ n^α; the shares sum to one."""
    if mixture.weights is not None:
        parts = {name: mixture.weights[name] for name in sizes}
    else:
        assert mixture.temperature is not None
        whole = sum(sizes.values())
        parts = {name: (size / whole) ** mixture.temperature for name, size in sizes.items()}
    together = sum(parts.values())
    return {name: part / together for name, part in parts.items()}


def last_key(measured: Sequence[Path], collections: Sequence[str], unit: str, amount: int) -> int:
    """Largest key of the texts that make up `amount` documents or characters, taken by ascending keys.

    Characters are met as nearly as whole texts can. Two passes over the keys: in which of 2^16 parts of their range the
    last one is, and which it is.
    """
    histogram = np.zeros(2**_HIGH_BITS, np.int64)
    for keys, amounts in _arrays(measured, collections, unit):
        np.add.at(histogram, (keys >> np.uint64(64 - _HIGH_BITS)).astype(np.int64), amounts)
    before = np.concatenate([[0], np.cumsum(histogram)])
    part = int(np.searchsorted(before[1:], amount))
    if part == len(histogram):
        return 2**64 - 1
    inside: list[tuple[int, int]] = []
    for keys, amounts in _arrays(measured, collections, unit):
        here = (keys >> np.uint64(64 - _HIGH_BITS)) == part
        inside += zip(keys[here].tolist(), amounts[here].tolist(), strict=True)
    inside.sort()
    reached, chosen = int(before[part]), -1
    for key, size in inside:
        if abs(reached + size - amount) > abs(reached - amount):
            break
        reached, chosen = reached + size, key
    if chosen < 0:  # the text at the border is left out: the last key is the largest of the parts before
        return max((part << (64 - _HIGH_BITS)) - 1, -1)
    return chosen


def _arrays(
    measured: Sequence[Path], collections: Sequence[str], unit: str
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Yield the keys of texts and how much each text counts, shard by shard."""
    for folder in measured:
        for collection, counts in read_json(folder / COUNTS).items():
            if collection in collections:
                keys = np.load(folder / f"{counts['number']}.keys.npy")
                lengths = np.load(folder / f"{counts['number']}.lengths.npy").astype(np.int64)
                yield keys, _AMOUNTS[unit](lengths)
