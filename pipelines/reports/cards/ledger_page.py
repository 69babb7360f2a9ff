"""The leakage ledger as an HTML page: how many texts of each table overlap the evaluation, with examples of each
kind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pipelines.corpora.leaks.ledger import LedgerEntry, totals
from pipelines.corpora.shards.tables import Row
from pipelines.messages.translation import translatable
from pipelines.reports.elements.translated_templates import translating_environment
from pipelines.reports.elements.wording import plain
from pipelines.reports.style import STYLE

LEDGER_PAGE = "ledger.html"
PAGES = Path(__file__).parent / "templates"
SHOWN_OF_EACH = 20

_MEANINGS = {
    "exact": translatable("the same letters and digits"),
    "ngram": translatable("common word n-grams, as a share of those of the shorter text"),
    "minhash": translatable("near-duplicate: estimated Jaccard index of word 5-grams"),
}
_ACTIONS = {
    "drop": translatable("removed"),
    "keep": translatable("kept, as published; leaks.parquet marks the clean evaluation rows"),
    "warn": translatable("kept, as set in params.yaml"),
}


def page(dataset: str, rows: Iterable[Row]) -> str:
    """A self-contained HTML page in the current language: all `rows` counted, the first of each table, part and kind
    shown."""
    from jinja2 import FileSystemLoader

    shown: dict[tuple[str, str, str], list[LedgerEntry]] = {}

    def collecting() -> Iterable[Row]:
        for row in rows:
            entry = LedgerEntry(*row)
            some = shown.setdefault((entry.table, entry.part, entry.kind), [])
            if len(some) < SHOWN_OF_EACH:
                some.append(entry)
            yield row

    counts = totals(collecting())
    pages = translating_environment(FileSystemLoader(PAGES), keep_trailing_newline=True)
    pages.filters["plain"] = plain
    values = {"counts": counts, "shown": shown, "meanings": _MEANINGS, "actions": _ACTIONS, "page_file": LEDGER_PAGE}
    return pages.get_template(LEDGER_PAGE).render(style=STYLE, dataset=dataset, **values)
