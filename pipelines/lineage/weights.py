"""What a model's weights went through, from the records of the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

PLAIN_TEXT = ("pretrain", "adapt_domain", "adapt_task")
"""Kinds of stages that train on plain text, in the order of a curriculum."""

Record = Mapping[str, Any]
"""A `provenance.json` as it was read."""


def continued(fingerprint: str, records: Mapping[str, Record]) -> Iterator[Record]:
    """The record of a model, of the one whose weights it continues, and so on to the first; what is unknown ends it.

    One that starts from random weights continues none: only the shape is that of its start.
    """
    record = records.get(fingerprint)
    while record is not None:
        yield record
        record = None if record["identity"].get("untrained") else records.get(record["parents"].get("start", ""))
