"""Duplicates inside a labelled set as it was published, counted independently of what is done about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ExampleKeys:
    """What examples of a labelled set have in common, as numbers: 17 bytes an example, whatever its text."""

    texts: NDArray[np.int64]
    """[examples] Examples with equal texts share a number."""
    answers: NDArray[np.uint64]
    """[examples] A hash of the answer."""
    parts: NDArray[np.int8]
    """[examples] Index of the part in `names`."""
    names: tuple[str, ...]

    @classmethod
    def of(cls, keys: NDArray[np.uint64], answers: Iterable[str], parts: Iterable[str], names: Sequence[str]) -> Self:
        """From the keys [examples, 2] of their texts, their answers, and their parts, all of which are in `names`."""
        hashes = (blake2b(answer.encode("utf-8", "surrogatepass"), digest_size=8).digest() for answer in answers)
        codes = {name: code for code, name in enumerate(names)}
        return cls(
            np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64),
            np.frombuffer(b"".join(hashes), np.uint64),
            np.fromiter((codes[part] for part in parts), np.int8, len(keys)),
            tuple(names),
        )

    def of_part(self, name: str) -> ExampleKeys:
        """The keys of the examples of one part, in order."""
        inside = self.parts == self.names.index(name)
        return replace(self, texts=self.texts[inside], answers=self.answers[inside], parts=self.parts[inside])

    def contradictory(self) -> NDArray[np.int64]:
        """Numbers of texts that have several answers."""
        distinct = np.unique(np.stack([self.texts.astype(np.uint64), self.answers]), axis=1)[0]
        values, counts = np.unique(distinct, return_counts=True)
        return values[counts > 1].astype(np.int64)


def published_leaks(examples: ExampleKeys) -> dict[str, Any]:
    """Count duplicates in a labelled set; zero counts are omitted.

    `repeats`: further copies inside each part. `across`: examples of the second part whose text also occurs in the
    first. `two_answers`: texts that occur with more than one answer, in any part.
    """
    texts = {name: examples.of_part(name).texts for name in examples.names}
    repeats = {name: len(own) - len(np.unique(own)) for name, own in texts.items()}
    across = {
        f"{first}/{second}": int(np.isin(texts[second], texts[first]).sum())
        for first, second in combinations(examples.names, 2)
    }
    return {
        "repeats": {name: count for name, count in repeats.items() if count},
        "across": {pair: count for pair, count in across.items() if count},
        "two_answers": len(examples.contradictory()),
    }
