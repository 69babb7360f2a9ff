"""The training history of a model's weights, from the records of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PLAIN_TEXT = ("pretrain", "adapt_domain", "adapt_task")
"""Kinds of stages that train on plain text, in the order of a curriculum."""

Record = Mapping[str, Any]
"""A parsed `provenance.json`."""


def weight_history(fingerprint: str, records: Mapping[str, Record]) -> Iterator[Record]:
    """Yield the record of a model, of the model whose weights it continues, and so on to the first; stops at an unknown
    one.

    A model with `untrained` random weights continues no other: it takes only the architecture from its start.
    """
    record = records.get(fingerprint)
    while record is not None:
        yield record
        record = None if record["identity"].get("untrained") else records.get(record["parents"].get("start", ""))
