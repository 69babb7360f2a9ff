"""The card of a prepared dataset: card.md with the header of the Hugging Face Hub, in English as cards on it are, and a
self-contained card.html in every language.

All have the same contents and no time or path of their making: the same dataset gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.corpora.leaks.ledger import LEDGER
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.shards.tables import read_rows
from pipelines.corpora.shards.writing import read_json
from pipelines.corpora.steps.step import prepared, run_step
from pipelines.lineage.disk import write_text_atomically
from pipelines.messages.translation import LANGUAGES, in_language, localized
from pipelines.reports.cards import ledger_page
from pipelines.reports.cards.facts import facts
from pipelines.reports.cards.ledger_page import LEDGER_PAGE
from pipelines.reports.cards.plots import write_plots
from pipelines.reports.elements.reasons import reason_text
from pipelines.reports.elements.translated_templates import translating_environment
from pipelines.reports.elements.wording import plain
from pipelines.reports.style import STYLE
from pipelines.safety.markdown import inert

CARD_PAGE = "card.html"
PAGES = Path(__file__).parent / "templates"


def card(dataset: str, root: Path) -> None:
    """Write card.md, card.html, ledger.html and the tables of `dvc plots` into the folder of the tables."""
    home = prepared(dataset, root)
    values = facts(dataset, load_dataset(dataset, root), root, home)
    ledger = home / "decontaminated" / LEDGER
    write_text_atomically(home / "card.md", _rendered("card.md", values))
    for name in LANGUAGES:
        with in_language(name):
            write_text_atomically(home / localized(CARD_PAGE), _rendered(CARD_PAGE, values))
            if ledger.is_file():
                write_text_atomically(home / localized(LEDGER_PAGE), ledger_page.page(dataset, read_rows(ledger)))
    write_plots(home, read_json(home / "profile.json"), read_json(home / "summary.json"))


def _rendered(name: str, values: Mapping[str, Any]) -> str:
    """The template `name` with `values`, in the current language."""
    from jinja2 import FileSystemLoader

    pages = translating_environment(
        FileSystemLoader(PAGES), autoescape=name.endswith(".html"), keep_trailing_newline=True
    )
    pages.filters |= {"cell": inert, "plain": plain, "reason": reason_text}
    return pages.get_template(name).render(**values, style=STYLE, page_file=name)


if __name__ == "__main__":
    run_step(card)
