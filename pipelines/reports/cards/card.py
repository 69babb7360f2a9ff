"""The card of a prepared dataset: card.md with the header of the Hugging Face Hub, and a self-contained card.html.

Both have the same contents and no time or path of their making: the same dataset gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from pipelines.corpora.leaks.ledger import LEDGER
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.shards.tables import read_rows
from pipelines.corpora.steps.step import prepared, run_step
from pipelines.lineage.disk import write_text_atomically
from pipelines.reports.cards import ledger_page
from pipelines.reports.cards.facts import facts
from pipelines.reports.cards.ledger_page import LEDGER_PAGE
from pipelines.reports.style import STYLE
from pipelines.safety.markdown import inert

PAGES = Path(__file__).parent / "templates"


def card(dataset: str, root: Path) -> None:
    """Write card.md, card.html and ledger.html into the folder of the tables."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    home = prepared(dataset, root)
    values = facts(dataset, load_dataset(dataset, root), root, home)
    for name in ("card.md", "card.html"):
        pages = Environment(
            loader=FileSystemLoader(PAGES),
            autoescape=name.endswith(".html"),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        pages.filters["cell"] = inert
        text = pages.get_template(name).render(**values, style=STYLE)
        write_text_atomically(home / name, text)
    ledger = home / "decontaminated" / LEDGER
    if ledger.is_file():
        write_text_atomically(home / LEDGER_PAGE, ledger_page.page(dataset, read_rows(ledger)))


if __name__ == "__main__":
    run_step(card)
