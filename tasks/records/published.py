"""Published figures of claims that were compared with a source: `docs/published.yaml`, which people write.

    electra/electra_against_bert:
      {read: "https://arxiv.org/abs/2003.10555", kind: transcript, date: 2026-11-28, agrees: true, says: table 1 …}

An entry that corrected the recipe has `was` and `now`, the words before and after: a record that was measured before
the correction is shown with the words of now.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from pipelines.errors import RecipeError
from tasks.records.notes import read_notes

FILE = Path("docs/published.yaml")
Kind: TypeAlias = Literal["transcript", "abstract", "repository", "copy"]
"""Stored text of a paper, its summary alone, the authors' page of results, or somebody's copy of a table."""
AGREEMENTS = (True, False, "in part", "not stated")
KEYS = ("read", "kind", "date", "agrees", "says")
CORRECTION = ("was", "now")
NOT_COMPARED = "noted without access to the papers: look them up before you quote them."


def read_published(root: Path) -> dict[str, dict[str, Any]]:
    """`recipe/claim` → what its published figure was compared with; empty where the project in `root` has no such file.

    Raises RecipeError, which names file and claim, for a file that does not have the form above.
    """
    path = root / FILE
    written = read_notes(path, "claims to what their published figures were compared with")
    for name, one in written.items():
        if problem := _problem(one):
            raise RecipeError(f"{path}: {name}: {problem}")
    return written


def with_corrections(
    records: Mapping[str, Mapping[str, Any]], published: Mapping[str, Mapping[str, Any]]
) -> dict[str, Mapping[str, Any]]:
    """The records, each published figure in the words of now."""
    return {name: {**one, "published": _corrected(one, published)} for name, one in records.items()}


def published_sentence(records: Iterable[Mapping[str, Any]], published: Mapping[str, Mapping[str, Any]]) -> str:
    """How many of the published figures that the records quote were compared with a source, and agree with it."""
    claims = {_name(one) for one in records}
    agreeing = {name for name in claims if published.get(name, {}).get("agrees") is True}
    if not agreeing:
        return f"The published figures were {NOT_COMPARED}"
    return (
        f"The published figures of {len(agreeing)} of these {len(claims)} claims were compared with a source and agree "
        f"(`{FILE}`).\nThe others were {NOT_COMPARED}"
    )


def _corrected(record: Mapping[str, Any], published: Mapping[str, Mapping[str, Any]]) -> str:
    entry = published.get(_name(record), {})
    return str(record["published"]).replace(entry["was"], entry["now"]) if "was" in entry else record["published"]


def _name(record: Mapping[str, Any]) -> str:
    return f"{record['recipe']}/{record['claim']}"


def _problem(entry: object) -> str:
    """What is wrong with an entry; empty if nothing is."""
    if not isinstance(entry, dict) or set(entry) not in ({*KEYS}, {*KEYS, *CORRECTION}):
        return f"must have the keys {', '.join(KEYS)}; {' and '.join(CORRECTION)} if it corrected the recipe"
    if entry["kind"] not in get_args(Kind):
        return f"kind: {entry['kind']!r} is none of: {', '.join(get_args(Kind))}"
    if entry["agrees"] not in AGREEMENTS:
        return f"agrees: {entry['agrees']!r} is none of: {', '.join(map(str, AGREEMENTS)).lower()}"
    if not isinstance(entry["date"], datetime.date):
        return f"date: {entry['date']!r} is no date"
    empty = [key for key in ("read", "says", *CORRECTION) if not str(entry.get(key, "-")).strip()]
    return f"{empty[0]}: is empty" if empty else ""
