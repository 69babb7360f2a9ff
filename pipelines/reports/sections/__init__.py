"""Pages beside the report: each shows one kind of thing that was measured, known by what its record holds.

    class Robustness(Page, name="robustness"):      # robustness.py, and robustness.html, which extends base.html
        title = "Robustness"
        def found(self, report): ...                # what the page shows; None where nothing of it was measured
        def sentences(self, content): ...           # what of it belongs into the report's summary
        def tables(self, content): ...              # its tables, also written as CSV and LaTeX

A template is given `content`, `tables` (by key; `{{ tables.losses | table }}`), `execution` and `language`. A page takes
nothing from elsewhere and runs nothing: its plots are inline SVG coloured by the style's variables.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pipelines.components import Component
from pipelines.reports.anchors import Anchor
from pipelines.reports.elements.table import Table
from pipelines.reports.judged_stages import Judged


@dataclass(frozen=True)
class Report:
    """What was recorded of an execution: all that a page may read."""

    execution: Mapping[str, Any]
    """Its `execution.json`."""
    records: Mapping[str, Mapping[str, Any]]
    """Fingerprint → provenance record, of its steps and all their ancestors."""
    store: Path
    """A folder for each fingerprint."""
    judged: Sequence[Judged]
    """What its evaluate stages found."""
    anchors: Sequence[Anchor] = ()
    """Published figures to place beside."""

    def sections(self, key: str) -> list[tuple[str, Mapping[str, Any]]]:
        """(evaluate stage, section) of every section that has `key`."""
        return [(one.stage, section) for one in self.judged for section in one.sections.values() if key in section]


class Page(Component):
    """One page beside the report."""

    title: ClassVar[str]

    @abstractmethod
    def found(self, report: Report) -> dict[str, Any] | None:
        """What the template shows; None where nothing of it was measured."""

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        """What the page found, in the words of someone who has to decide something."""
        return []

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        """The tables that the page shows."""
        return []
