"""Draw the validation and test examples, and those that keep their labels, by the hashes of their texts.

A draw depends on the texts alone, not on their order or on other tables.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256

from pipelines.corpora.duplicates.overlap import text_key
from pipelines.corpora.settings.task import has_classes
from pipelines.errors import DataError
from pipelines.task_families import Row, TaskFamily


def assign_parts(rows: Sequence[Row], family: TaskFamily, shares: Mapping[str, float]) -> list[str]:
    """Part of every row: `shares` of each label in the order given, at least one text each, the rest 'train'.

    Rows with the same text go to the same part; for families without classes all rows are drawn together.
    """
    texts = ["\n".join(str(row[name] or "") for name in family.shared).strip() or family.text(row) for row in rows]
    keys = [sha256(text_key(text)).digest() for text in texts]
    of_label: dict[str, set[bytes]] = defaultdict(set)
    for row, key in zip(rows, keys, strict=True):
        of_label[row["label"] if has_classes(family) else ""].add(key)
    part: dict[bytes, str] = {}
    for label in sorted(of_label):
        ranked = sorted(of_label[label])
        begin = 0
        for name, share in shares.items():
            size = max(math.floor(share * len(ranked)), min(1, len(ranked) - begin - 1))
            part |= dict.fromkeys(ranked[begin : begin + size], name)
            begin += size
    return [part.get(key, "train") for key in keys]


def draw_labelled(rows: Sequence[Row], family: TaskFamily, per_class: int | None, examples: int | None) -> set[int]:
    """Indices of the training examples that keep their labels: `per_class` of each label, or `examples` in total.

    With `examples`, one of each label is taken first, then others in the order of their hashes. Raises DataError when
    there are fewer examples, or `examples` is smaller than the number needed to cover all labels.
    """
    if per_class is None and examples is None:
        return set(range(len(rows)))
    hashes = [sha256(family.text(row).encode()).digest() for row in rows]
    order = sorted(range(len(rows)), key=lambda number: hashes[number])
    if per_class is not None:
        return _of_each_label(rows, order, per_class)
    assert examples is not None
    if examples > len(rows):
        raise DataError(f"labelled_examples requests {examples} examples, but only {len(rows)} are left to train on")
    first, seen = [], set[str]()
    for number in order:
        labels = set(family.labels([rows[number]])) - seen
        if labels:
            seen |= labels
            first.append(number)
    if len(first) > examples:
        raise DataError(
            f"labelled_examples requests {examples} examples, but {len(first)} are needed to cover all labels"
        )
    chosen = set(first)
    return chosen | set([number for number in order if number not in chosen][: examples - len(chosen)])


def _of_each_label(rows: Sequence[Row], order: Sequence[int], per_class: int) -> set[int]:
    of_label: dict[str, list[int]] = defaultdict(list)
    for number in order:
        of_label[rows[number]["label"]].append(number)
    for label, numbers in sorted(of_label.items()):
        if len(numbers) < per_class:
            raise DataError(
                f"labels_per_class requests {per_class} examples, but {label!r} has only {len(numbers)} left to train "
                "on"
            )
    return {number for numbers in of_label.values() for number in numbers[:per_class]}
