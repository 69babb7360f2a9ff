"""What a labelled set repeats inside itself, as it was published: counted, whatever is done about it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple


class PublishedExample(NamedTuple):
    """One example: the key its text shares with the same texts, its part, and its answer."""

    key: bytes
    part: str
    answer: str


def published_leaks(examples: Sequence[PublishedExample], parts: Sequence[str]) -> dict[str, Any]:
    """`repeats`: further copies inside each part. `across`: examples of the second part whose text stands in the first.

    `two_answers`: texts that stand anywhere with more than one answer. What is zero is left out.
    """
    keys = {part: [one.key for one in examples if one.part == part] for part in parts}
    repeats = {part: len(found) - len(set(found)) for part, found in keys.items()}
    counts = {part: Counter(found) for part, found in keys.items()}
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
        "two_answers": sum(len(found) > 1 for found in answers.values()),
    }
