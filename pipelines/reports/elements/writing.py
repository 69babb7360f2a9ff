"""Rendering of templates to files: one Jinja environment for all pages, files written atomically.

A page is written in every language: `report.html`, `report.zh.html`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.lineage.disk import write_text_atomically
from pipelines.messages.translation import localized
from pipelines.reports.elements import axes, table, wording
from pipelines.reports.elements.reasons import reason_text
from pipelines.reports.elements.translated_templates import translating_environment
from pipelines.reports.style import STYLE

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "sections")


@cache
def environment() -> Environment:
    """The Jinja environment with the filters of all templates."""
    from jinja2 import FileSystemLoader

    pages = translating_environment(FileSystemLoader(FOLDERS))
    pages.filters |= {
        "count": axes.count,
        "percent": axes.percent,
        "points": axes.points,
        "duration": axes.duration,
        "score": wording.score,
        "difference": wording.difference,
        "measured_in": wording.measured_in,
        "metric_name": wording.metric_name,
        "capital": wording.capital,
        "plain": wording.plain,
        "reason": reason_text,
        "unbroken": wording.unbroken,
        "table": table.Table.html,
        "coloured_verdict": table.coloured_verdict,
    }
    pages.globals |= {"span": wording.span, "style": STYLE}
    return pages


def write_page(template: str, values: Mapping[str, Any], out: Path) -> Path:
    """Render `template` with `values` in the current language, atomically, and return the path of the page.

    `out` is the path of the English page; the others are next to it, and the pages link to each other.
    """
    page = environment().get_template(template).render(**values, page_file=out.name)
    own = out.with_name(localized(out.name))
    own.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(own, page)
    return own
