"""`cursus.run`: train a recipe through all its stages."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cursus.project import Root, prepared_root

if TYPE_CHECKING:
    from pipelines.reports.score_tables import ScoreTable


@dataclass(frozen=True)
class Run:
    """A completed run: nothing of it is missing in the store."""

    dataset: str
    recipe: str
    report: Path | None
    """Its first page, for a browser."""
    computed: tuple[str, ...]
    """Labels of the steps that were computed; the others were in the store."""
    models: Mapping[str, str]
    """Registered model → version, of those that this run registered."""
    fingerprints: Mapping[str, str]
    """Label of every step → fingerprint: what `cursus.load` and `cursus.lineage` take."""
    scores: tuple[ScoreTable, ...]
    """The score tables of its evaluate stages, with 95 % intervals."""


def run(
    recipe: str | None = None,
    *,
    dataset: str | None = None,
    variants: Sequence[str] = (),
    smoke: bool = False,
    until: str | None = None,
    threads: int | None = None,
    root: Root = None,
) -> Run:
    """Train `recipe` (default: the dataset's own) on `dataset` (default: the project's) through all its stages.

    Steps that are in the store are not computed again. `smoke` uses tiny sizes and registers nothing, `until` stops
    after a stage, `threads` limits the processor cores. Progress is written to standard error. Raises CursusError for
    a mistake, before anything is computed, and KeyboardInterrupt when it is stopped; the same call then continues.
    """
    folder = prepared_root(root)
    from flows.cli.running import complete, requested
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.records.reports import score_tables

    def notify(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    store = Store(store_folder(folder))
    previewer = requested(folder, store, recipe, dataset, tuple(variants), smoke, until, notify)
    with store.shared(notify):
        outcome = complete(previewer, previewer.before(), threads)
        plan = outcome.preview.plan
        return Run(
            dataset=previewer.request.dataset,
            recipe=previewer.request.recipe,
            report=outcome.report,
            computed=outcome.computed,
            models=dict(outcome.models),
            fingerprints={step.label: step.fingerprint for step in plan.steps},
            scores=tuple(score_tables(store, plan)),
        )
