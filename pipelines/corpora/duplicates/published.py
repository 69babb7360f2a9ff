"""Duplicates inside a labelled set as it was published, counted independently of what is done about them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple


class PublishedExample(NamedTuple):
    """One example: the key of its text (equal texts share it), its part, and its answer."""

    key: bytes
    part: str
    answer: str


def published_leaks(examples: Sequence[PublishedExample], parts: Sequence[str]) -> dict[str, Any]:
    """Count duplicates in a labelled set; zero counts are omitted.

    `repeats`: further copies inside each part. `across`: examples of the second part whose text also occurs in the
    first. `two_answers`: texts that occur with more than one answer, in any part.
    """
    keys = {part: [one.key for one in examples if one.part == part] for part in parts}
    repeats = {part: len(part_keys) - len(set(part_keys)) for part, part_keys in keys.items()}
    counts = {part: Counter(part_keys) for part, part_keys in keys.items()}
    across = {
        f"{first}/{second}": sum(count for key, count in counts[second].items() if key in counts[first])
        for first, second in combinations(parts, 2)
    }
    answers: dict[bytes, set[str]] = defaultdict(set)
    for one in examples:
        answers[one.key].add(one.answer)
    return {
        "repeats": {part: count for part, count in repeats.items() if count},
        "across": {pair: count for pair, count in across.items() if count},
        "two_answers": sum(len(distinct) > 1 for distinct in answers.values()),
    }
