"""The end of `cursus run`, and a run that needs no computing: shown from its record, without planning anew."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from flows.cli.display import next_commands, show_next, show_scores
from pipelines.errors import CursusError
from pipelines.lineage.locks import Lock
from pipelines.messages.translation import localized_page, message
from tasks.datasets.lock_files import checkout_lock, dataset_lock
from tasks.records.complete_runs import CompleteRun, read_complete_run, write_complete_run

if TYPE_CHECKING:
    from flows.cli.running import RunOutcome
    from pipelines.lineage.store import Store
    from pipelines.reports.score_tables import ScoreTable
    from tasks.records.run_inputs import RunInputs


def show_complete_run(root: Path, store: Path, record: Path, console: Console, *, smoke: bool) -> bool:
    """Print what the run of this record prints, and return True, if it still needs no computing.

    False, and nothing is printed, as well where another process changes the store or the data, and where MLflow has not
    recorded everything.
    """
    known = read_complete_run(record)
    if known is None:
        return False
    with ExitStack() as locks:
        if not _locked(root, store, known.run.dataset, locks) or not known.is_current():
            return False
        from pipelines.reports.score_tables import read_evaluation, score_tables
        from tasks.records.latest_report import latest_report
        from tasks.tracking.recorded import has_pending, is_recorded

        run, report = known.run, latest_report(root, set(known.run.fingerprints), smoke=smoke)
        if report is None or has_pending(root) or not is_recorded(root, report.parent.name):
            return False
        show_preparation(run.recipe, run.dataset)
        show_nothing_to_compute(console, run.steps)
        tables = score_tables(read_evaluation(stage, Path(file)) for stage, file in run.evaluations)
        show_end(console, tables, report, run.commands, smoke=smoke)
    return True


def record_complete_run(record: Path, inputs: RunInputs, store: Store, outcome: RunOutcome, dataset: str) -> None:
    """Record a run after which nothing is left to compute, unless what it depends on has changed meanwhile."""
    from pipelines.reports.score_tables import evaluation_files

    plan = outcome.preview.plan
    with suppress(CursusError):  # what is damaged or gone since is reported by the next run
        states = inputs.states(plan, dataset)
        if states is not None:
            evaluations = evaluation_files(store.root, [(step.name, step.fingerprint) for step in plan.steps])
            run = CompleteRun(
                recipe=plan.recipe.name,
                dataset=dataset,
                steps=len(plan.steps),
                fingerprints=tuple(step.fingerprint for step in plan.steps),
                evaluations=tuple((stage, str(file)) for stage, file in evaluations),
                commands=tuple(next_commands(plan, {})),
            )
            write_complete_run(record, run, states)


def show_preparation(recipe: str, dataset: str) -> None:
    """Print that the data of a run are being checked, and prepared if needed."""
    typer.echo(message("{recipe} on {dataset}: preparing the data", recipe=recipe, dataset=dataset), err=True)


def show_nothing_to_compute(console: Console, steps: int) -> None:
    """Print that all steps are in the store."""
    console.print(message("everything is in the store: {steps} steps cached, nothing to compute", steps=steps))


def show_end(
    console: Console, tables: Iterable[ScoreTable], report: Path | None, commands: Iterable[str], *, smoke: bool
) -> None:
    """Print the results of a run, its report, and the next commands."""
    show_scores(console, tables)
    if report is not None:
        console.print(message("report   {path}", path=localized_page(report)), soft_wrap=True)
    if smoke:
        console.print(message("smoke    no model is registered, and no command uses these by default"), soft_wrap=True)
        return
    show_next(console, commands)


def _locked(root: Path, store: Path, dataset: str, locks: ExitStack) -> bool:
    """Share the store and the data until `locks` is closed; False where another process holds one of them alone."""
    try:
        for path in (store / ".lock", checkout_lock(root), dataset_lock(dataset, root)):
            lock = Lock.take(path, shared=True)
            if lock is None:
                return False
            locks.callback(lock.release)
    except OSError:  # of a disk that cannot be written
        return False
    return True
