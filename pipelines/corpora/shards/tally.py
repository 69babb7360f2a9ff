"""Counts, by reason, of what a step drops or changes, with a few samples of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

SAMPLES = 5
EXCERPT = 300


class Tally:
    """Counts by reason. Samples are those with the smallest hashes, independent of order and parts."""

    def __init__(self) -> None:
        self.dropped: Counter[str] = Counter()
        self.changed: Counter[str] = Counter()
        self._samples: dict[str, dict[bytes, dict[str, str]]] = {}

    def drop(self, reason: str, text: str = "", where: str = "") -> None:
        """Count a dropped text; `where` is its location, `text` its content."""
        self.dropped[reason] += 1
        self._keep(reason, text, where)

    def change(self, reason: str, count: int = 1) -> None:
        """Count `count` changes in a text that is kept."""
        if count:
            self.changed[reason] += count

    def add(self, counts: Mapping[str, Any]) -> None:
        """Add the `counts()` of another tally."""
        self.dropped.update(counts["dropped"])
        self.changed.update(counts["changed"])
        for reason, samples in counts["samples"].items():
            for sample in samples:
                self._keep(reason, sample["excerpt"], sample["source"])

    def counts(self) -> dict[str, Any]:
        """All counts as JSON: `dropped` and `changed` by reason, `samples` (source, excerpt) of dropped texts."""
        return {
            "dropped": dict(sorted(self.dropped.items())),
            "changed": dict(sorted(self.changed.items())),
            "samples": {
                reason: [kept[key] for key in sorted(kept)] for reason, kept in sorted(self._samples.items()) if kept
            },
        }

    def _keep(self, reason: str, text: str, where: str) -> None:
        if not text and not where:
            return
        excerpt = text[:EXCERPT]
        kept = self._samples.setdefault(reason, {})
        kept[blake2b(f"{where}\0{excerpt}".encode("utf-8", "replace"), digest_size=8).digest()] = {
            "source": where,
            "excerpt": excerpt,
        }
        if len(kept) > SAMPLES:
            del kept[max(kept)]
