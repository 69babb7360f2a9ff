"""Sections of the report: each is a page of its own for one kind of measurement, recognised by the keys of its record.

    class RobustnessSection(Section, name="robustness"):   # robustness.py, and robustness.html, which extends base.html
        title = translatable("Robustness")
        def section_data(self, report): ...                 # the data that it shows; None when the report has none
        def sentences(self, content): ...                   # its contribution to the report's summary
        def tables(self, content): ...                      # its tables, also written as CSV and LaTeX

A template receives `content`, `tables` (by key; `{{ tables.losses | table }}`), `execution` and `language`. A page
loads nothing and runs no script: its plots are inline SVG coloured by the style's variables. Every page is made in each
language, so its sentences are `message("…")` and, in templates, `{% trans %}…{% endtrans %}`.
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
from pipelines.reports.score_tables import EvaluationRecord


@dataclass(frozen=True)
class Report:
    """The records of an execution: everything that a section may read."""

    execution: Mapping[str, Any]
    """Its `execution.json`."""
    records: Mapping[str, Mapping[str, Any]]
    """Fingerprint → provenance record, of its steps and all their ancestors."""
    store: Path
    """A folder for each fingerprint."""
    evaluations: Sequence[EvaluationRecord]
    """The results of its evaluate stages."""
    anchors: Sequence[Anchor] = ()
    """Published figures to compare with."""

    def sections(self, key: str) -> list[tuple[str, Mapping[str, Any]]]:
        """(evaluate stage, section) of every section that has `key`."""
        return [(one.stage, section) for one in self.evaluations for section in one.sections.values() if key in section]


class Section(Component):
    """A section of the report, on a page of its own."""

    title: ClassVar[str]
    """Its English name, marked as `translatable`."""

    @abstractmethod
    def section_data(self, report: Report) -> dict[str, Any] | None:
        """The data that this section shows; None when the report has none."""

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        """The results in sentences for the report's summary, the decision first."""
        return []

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        """The tables that the section shows."""
        return []
