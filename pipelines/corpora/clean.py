"""Repair what reading leaves: line ends, control characters, spaces, empty, too short and overlong texts."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines.corpora.settings import CleanSettings, load_dataset
from pipelines.corpora.step import prepared, run_step
from pipelines.corpora.tables import PARTS, TEXTS, Row, read_rows, write_rows
from pipelines.corpora.writing import read_json, write_json, written_aside
from pipelines.errors import DataError

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\u200b\ufffe\uffff]")
_TRAILING = re.compile(r"[ \t\u00a0\u3000]+$", re.MULTILINE)
_BLANK_LINES = re.compile(r"\n{3,}")


def clean(dataset: str, root: Path) -> None:
    """Write `cleaned/` from `collected/`. DataError when nothing of a corpus is left."""
    settings = load_dataset(dataset, root).clean
    before = prepared(dataset, root) / "collected"
    history = read_json(before / "counts.json")
    with written_aside(prepared(dataset, root) / "cleaned") as folder:
        tables = {}
        for name, schema in (("general", TEXTS), ("domain", TEXTS), ("task", PARTS)):
            dropped: Counter[str] = Counter()
            rows = cleaned(read_rows(before / f"{name}.parquet"), settings, dropped)
            tables[name] = write_rows(folder / f"{name}.parquet", schema, rows) | {"dropped": dict(dropped)}
            if not tables[name]["documents"]:
                reasons = ", ".join(f"{count} {reason}" for reason, count in dropped.items())
                raise DataError(f"{dataset}: nothing of {name!r} is left after cleaning ({reasons})")
        write_json(folder / "counts.json", [*history, {"step": "clean", "tables": tables}])


def cleaned(rows: Iterable[Row], settings: CleanSettings, dropped: Counter[str]) -> Iterator[Row]:
    """The rows with repaired texts; `dropped` counts those that went, by reason.

    Unlabelled texts are cut into pieces, so nothing is lost; a labelled text keeps its beginning.
    """
    for text, *others in rows:
        text = repaired(text)
        labelled = len(others) > 1 and others[0] is not None
        if not text:
            dropped["empty"] += 1
        elif labelled:
            yield pieces(text, settings.max_characters)[0], *others
        elif len(text) < settings.min_characters:
            dropped["too short"] += 1
        else:
            yield from ((part, *others) for part in pieces(text, settings.max_characters))


def repaired(text: str) -> str:
    """The text in Unicode's composed form, with `\\n` line ends, no control characters and no trailing spaces."""
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\r", "\n"))
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", _CONTROL.sub("", text))).strip()


def pieces(text: str, longest: int) -> list[str]:
    """The text in pieces of at most `longest` characters, cut after a paragraph, a line or a word if it can."""
    found = []
    while len(text) > longest:
        cut = longest
        for mark in ("\n\n", "\n", "。", ". ", " "):
            after = text.rfind(mark, longest // 2, longest)
            if after >= 0:
                cut = after + len(mark)
                break
        found.append(text[:cut].strip())
        text = text[cut:].strip()
    return [piece for piece in [*found, text] if piece]


if __name__ == "__main__":
    run_step(clean)
