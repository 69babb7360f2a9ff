"""Questions about images of handwritten digits, the one exercise that needs more than documentation."""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import ClassVar, NamedTuple

from pipelines.corpora.documentation.exercises import DocumentedEntry, EntryExamples, Exercise
from pipelines.corpora.documentation.hashed_draws import hashed_draw
from pipelines.task_families.labelled_tables import PARTS

EDGE, GAP = 8, 2
"""Edge of the image of a digit, and distance of two, in pixels."""
INTENSITIES = 16
"""Largest value of a pixel."""
FEWEST, MOST = 4, 6
"""Number of digits in an image."""
LIMITS = (500, 700)
"""Thousandths of the digits where validation and test begin: no digit is in two parts."""
QUESTIONS = 2
"""Number of questions about an image."""
ORDINALS = ("first", "second", "third", "fourth")
NAME = "image"
"""The word of every region: it says nothing of the digit."""


class _Digit(NamedTuple):
    value: int
    pixels: list[float]


class DigitImages(Exercise, name="digit_images"):
    """Two questions about a row of scanned digits, of four kinds: the digit at a position, the one after another, an
    extreme, and a count. Digits, their order and the kinds are drawn by the hash of a documentation string's source.

    The digits are the 1,797 of scikit-learn (Alpaydin & Kaynak 1998, 8 × 8 pixels), which is installed with Cursus. A
    region is one of them, with its pixels from 0 to 1 as vector; regions are in an order of their own, so that only the
    boxes say where they are.
    """

    columns: ClassVar[Mapping[str, str]] = {
        "question": "string",
        "regions": "list<string>",
        "boxes": "list<list<int64>>",
        "vectors": "list<list<double>>",
        "size": "list<int64>",
        "label": "string",
    }

    def examples(self, entries: Sequence[DocumentedEntry]) -> EntryExamples:
        for entry in entries:
            digits = _row(entry)
            order = sorted(range(len(digits)), key=lambda position: entry.draw(f"order {position}", 2**32))
            lefts = [position * (EDGE + GAP) for position in order]
            shown = {
                "regions": [NAME] * len(digits),
                "boxes": [[left, 0, left + EDGE, EDGE] for left in lefts],
                "vectors": [digits[position].pixels for position in order],
                "size": [len(digits) * (EDGE + GAP) - GAP, EDGE],
            }
            questions = [*_questions(entry, [digit.value for digit in digits])]
            for question, answer in entry.from_drawn("kinds", questions)[:QUESTIONS]:
                yield entry, {"question": question, **shown, "label": str(answer)}


def _row(entry: DocumentedEntry) -> list[_Digit]:
    """The digits of an image, from left to right, drawn from those of its part."""
    pool = _scanned_digits()[entry.part]
    count = FEWEST + entry.draw("count", MOST - FEWEST + 1)
    return [pool[entry.draw(f"digit {position}", len(pool))] for position in range(count)]


@cache
def _scanned_digits() -> Mapping[str, Sequence[_Digit]]:
    """Part → its digits, in the order of scikit-learn."""
    from sklearn.datasets import load_digits

    scanned = load_digits()
    result: dict[str, list[_Digit]] = defaultdict(list)
    for number, (pixels, value) in enumerate(zip(scanned.data, scanned.target, strict=True)):
        part = PARTS[bisect(LIMITS, hashed_draw("part of a digit", str(number), 1000))]
        result[part].append(_Digit(int(value), (pixels / INTENSITIES).tolist()))
    return result


def _questions(entry: DocumentedEntry, values: Sequence[int]) -> Iterator[tuple[str, int]]:
    """Questions about the digits `values`, from left to right, with their answers."""
    position = entry.draw("position", len(ORDINALS))
    from_left = entry.draw("side", 2) == 0
    side = "left" if from_left else "right"
    yield f"Which digit is the {ORDINALS[position]} from the {side}?", values[position if from_left else -1 - position]
    single = [at for at, value in enumerate(values[:-1]) if values.count(value) == 1]
    if single:
        at = entry.from_drawn("before", single)[0]
        yield f"Which digit follows the {values[at]}?", values[at + 1]
    if entry.draw("extreme", 2) == 0:
        yield "Which digit is the largest?", max(values)
    else:
        yield "Which digit is the smallest?", min(values)
    limit = 2 + entry.draw("limit", 5)
    yield f"How many digits are larger than {limit}?", sum(value > limit for value in values)
