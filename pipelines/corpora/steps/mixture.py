"""How often every text of a corpus is written, so that its sources stand in the proportions that were asked.

A source that is asked for e times what it holds is written floor(e) times, and once more as many texts as are left over:
those with the smallest hashes, so that the choice depends on no order, and that of a smaller share lies in that of a larger.
Shares are met within one document a source.

What is global is numbers on disk: twelve bytes a document, and in memory 512 KiB a member.
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
"""Unit of a mixture → how much texts of these lengths count."""
COUNTS = "counts.json"


@dataclass(frozen=True)
class Copies:
    """How often the texts of a collection are written: each `whole` times, and once more if its key is at most `last`."""

    whole: int = 1
    last: int = -1

    @property
    def most(self) -> int:
        """Of one text."""
        return self.whole + (self.last >= 0)

    def of(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[N] of texts with these keys."""
        more = keys <= np.uint64(self.last) if self.last >= 0 else np.zeros(len(keys), bool)
        return self.whole + more.astype(np.int64)


@dataclass
class Share:
    """A member of a mixture: what it holds, and what is asked of it."""

    collections: tuple[str, ...]
    documents: int = 0
    characters: int = 0
    asked: float | None = None
    """Share of the mixture, 0 to 1; None: what it has by nature."""
    copies: Copies = field(default_factory=Copies)


@dataclass(frozen=True)
class Mixture:
    """The mixture of a corpus, and the collections of each of its members."""

    settings: MixtureSettings
    members: Mapping[str, Sequence[str]]


def key_of(text: str) -> int:
    """Decides which texts of a source are written once more: 64 bits of a hash that serves nothing else."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8, person=_PURPOSE).digest(), "big")


@dataclass(frozen=True)
class MeasuredShard:
    """A unit of work: the keys and lengths of one shard's texts by collection, as arrays."""

    name: str
    path: Path
    held_out: int = -1
    """The largest key of the texts that are held out, which count for nothing."""

    def __call__(self, folder: Path) -> None:
        found: dict[str, tuple[array[int], array[int]]] = {}
        with pq.ParquetFile(self.path) as table:
            for batch in table.iter_batches(ROWS_IN_A_GROUP, columns=["text", "collection"]):
                for text, collection in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    if self.held_out >= 0 and held_out_key(text) <= self.held_out:
                        continue
                    keys, lengths = found.setdefault(collection, (array("Q"), array("L")))
                    keys.append(key_of(text))
                    lengths.append(len(text))
        counts = {}
        for number, (collection, (keys, lengths)) in enumerate(found.items()):
            np.save(folder / f"{number}.keys.npy", np.array(keys, np.uint64))
            np.save(folder / f"{number}.lengths.npy", np.array(lengths, np.uint32))
            counts[collection] = {"number": number, "documents": len(keys), "characters": sum(lengths)}
        write_json(folder / COUNTS, counts)


def shares(mixture: Mixture, measured: Sequence[Path]) -> dict[str, Share]:
    """The members of a mixture with their copies, from the folders of `Measured`. A member without a document is left out."""
    settings = mixture.settings
    found = {name: Share(tuple(collections)) for name, collections in mixture.members.items()}
    of_collection = {name: share for share in found.values() for name in share.collections}
    for folder in measured:
        for collection, counts in read_json(folder / COUNTS).items():
            of_collection[collection].documents += counts["documents"]
            of_collection[collection].characters += counts["characters"]
    found = {name: share for name, share in found.items() if share.documents}
    sizes: dict[str, int] = {name: getattr(share, settings.unit) for name, share in found.items()}
    proportions = requested_shares(settings, sizes)
    for name, share in found.items():
        wanted = proportions[name] * settings.size * sum(sizes.values())
        whole = int(wanted // sizes[name])
        left = round(wanted - whole * sizes[name])
        share.asked = proportions[name]
        share.copies = Copies(whole, last_key(measured, share.collections, settings.unit, left) if left else -1)
    return found


def most_copies(measured: Path, copies: Mapping[str, Copies]) -> int:
    """How often a text of one shard is written at most, and at least 1."""
    return max([1, *(copies[collection].most for collection in read_json(measured / COUNTS))])


def mixture_report(
    counts: Sequence[Mapping[str, Any]], members: Mapping[str, Share] | None, unit: str
) -> list[dict[str, Any]]:
    """What each member of a mixture (None: each collection, as it is) holds, and has become.

    `counts` says how many documents and characters of each collection were written. `epochs` is how many times a source
    was written: above 1 it is repeated, below 1 some of it is left out.
    """
    written: dict[str, Counter[str]] = defaultdict(Counter)
    for count in counts:
        written[count["collection"]].update(documents=count["documents"], characters=count["characters"])
    if members is None:
        members = {name: Share((name,), count["documents"], count["characters"]) for name, count in written.items()}
    whole = sum(count[unit] for count in written.values())
    found = []
    for name in sorted(members):
        share = members[name]
        got = sum((written[collection] for collection in share.collections), Counter())
        found.append(
            {
                "source": name,
                "collections": sorted(share.collections),
                "documents": share.documents,
                "characters": share.characters,
                "written_documents": got["documents"],
                "written_characters": got["characters"],
                "unit": unit,
                "share_asked": share.asked,
                "share": got[unit] / whole if whole else 0.0,
                "epochs": got[unit] / max(1, getattr(share, unit)),
                "most_copies": share.copies.most,
            }
        )
    return found


def requested_shares(mixture: MixtureSettings, sizes: Mapping[str, int]) -> dict[str, float]:
    """The share of every member, by its weight or by p ∝ n^α; they sum to one."""
    if mixture.weights is not None:
        parts = {name: mixture.weights[name] for name in sizes}
    else:
        assert mixture.temperature is not None
        whole = sum(sizes.values())
        parts = {name: (size / whole) ** mixture.temperature for name, size in sizes.items()}
    together = sum(parts.values())
    return {name: part / together for name, part in parts.items()}


def last_key(measured: Sequence[Path], collections: Sequence[str], unit: str, wanted: int) -> int:
    """The largest key of the texts that make up `wanted` documents or characters, taken by ascending keys.

    Characters are met as near as whole texts can. Two passes over the keys: where in 2^16 parts of their range the last
    one lies, and which it is.
    """
    histogram = np.zeros(2**_HIGH_BITS, np.int64)
    for keys, amounts in _arrays(measured, collections, unit):
        np.add.at(histogram, (keys >> np.uint64(64 - _HIGH_BITS)).astype(np.int64), amounts)
    before = np.concatenate([[0], np.cumsum(histogram)])
    part = int(np.searchsorted(before[1:], wanted))
    if part == len(histogram):
        return 2**64 - 1
    inside: list[tuple[int, int]] = []
    for keys, amounts in _arrays(measured, collections, unit):
        here = (keys >> np.uint64(64 - _HIGH_BITS)) == part
        inside += zip(keys[here].tolist(), amounts[here].tolist(), strict=True)
    inside.sort()
    reached, chosen = int(before[part]), -1
    for key, amount in inside:
        if abs(reached + amount - wanted) > abs(reached - wanted):
            break
        reached, chosen = reached + amount, key
    if chosen < 0:  # the text on the border is left out: the last one is the largest key of the parts before
        return max((part << (64 - _HIGH_BITS)) - 1, -1)
    return chosen


def _arrays(
    measured: Sequence[Path], collections: Sequence[str], unit: str
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64]]]:
    """Keys, and how much each text counts, shard by shard."""
    for folder in measured:
        for collection, counts in read_json(folder / COUNTS).items():
            if collection in collections:
                keys = np.load(folder / f"{counts['number']}.keys.npy")
                lengths = np.load(folder / f"{counts['number']}.lengths.npy").astype(np.int64)
                yield keys, _AMOUNTS[unit](lengths)
