"""Rendering of templates to files: one Jinja environment for all pages, files written atomically."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.lineage.disk import write_text_atomically
from pipelines.reports.elements import axes, table, wording
from pipelines.reports.style import STYLE

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDERS = (Path(__file__).parent, Path(__file__).parents[1] / "sections")


@cache
def environment() -> Environment:
    """The Jinja environment with the filters of all templates. An undefined name in a template is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    pages = Environment(
        loader=FileSystemLoader(FOLDERS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
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
        "table": table.Table.html,
        "coloured_verdict": table.coloured_verdict,
    }
    pages.globals |= {"span": wording.span, "style": STYLE}
    return pages


def write_page(template: str, values: Mapping[str, Any], out: Path) -> Path:
    """Render `template` with `values` to the file `out`, atomically, and return its path."""
    page = environment().get_template(template).render(**values)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(out, page)
    return out
