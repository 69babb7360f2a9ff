"""`cursus compress`: published routes to a smaller model, within megabytes, milliseconds and points."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from flows.cli.exit_status import handle_errors
from flows.cli.options import Dataset, model_names
from flows.cli.store_in_use import hold
from pipelines.messages.translation import localized_page, message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from pipelines.judging.front import Choice
    from pipelines.lineage.store import Store
    from tasks.compression.answer import Measured
    from tasks.compression.planning import CompressionPlan

console = Console(highlight=False)
NOTHING_WITHIN = 1
"""Exit status where no form is within the limits."""


@handle_errors
def compress(
    within: Annotated[
        str,
        typer.Option(
            "--within",
            help='What serving may cost: size on disk, time of one answer, points of the score that may be lost; "10 '
            'MB, 5 ms, -2 points" or some of them.',
        ),
    ],
    model: Annotated[
        str | None,
        typer.Argument(
            help="A stage, a registered model, a fingerprint's first digits, or the folder of a Hugging Face "
            "classifier; when not given, the dataset's champion, or else its latest model, before its compression.",
            autocompletion=model_names,
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time for training and measuring: 20m, 90s, 1h30m; no limit when not given.")
    ] = None,
    dataset: Dataset = None,
    route: Annotated[
        list[str] | None, typer.Option(help="A route of recipes/routes; repeatable. All that fit when not given.")
    ] = None,
    runtime: Annotated[
        list[str] | None,
        typer.Option(help="A serving runtime to measure beside torch; repeatable. All of this machine when not given."),
    ] = None,
    to: Annotated[Path | None, typer.Option("--to", help="The folder to write; compressed/… when not given.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor cores for training.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the routes with expected bytes and minutes, and compute nothing.")
    ] = False,
) -> None:
    """Make a model smaller: try published routes, measure each on this machine, and keep the best within the limits.

    Example: cursus compress classify --within "10 MB, 5 ms, -2 points" --budget 20m
    """
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    root = project_root()
    prepare_environment(root)
    from flows.cli.preview import Previewer
    from pipelines.judging.limits import Limits
    from pipelines.lineage.store import Store
    from tasks.compression.answer import Measured, destination_of, keep
    from tasks.compression.planning import plan_compression
    from tasks.compression.request import compression_request, for_labels
    from tasks.compression.selection import seconds_of
    from tasks.datasets.planning import store_folder

    limits, seconds = Limits.parse(within), seconds_of(budget) if budget else None
    requested = compression_request(root, model, dataset, route or (), runtime or ())
    store = Store(store_folder(root))
    typer.echo(message("model    {why}", why=requested.title), err=True)
    hold(store)
    previewer = Previewer(root, requested.request, store, lambda line: typer.echo(line, err=True))
    prepared = previewer.before(only=dry_run).prepared
    requested = for_labels(requested, prepared, root)
    planned = plan_compression(root, store, requested, prepared, seconds, threads)
    show_routes(planned)
    if dry_run:
        return
    folder = destination_of(root, requested, str(to) if to else None)
    report = _finished(root, store, planned, within) if planned.measured else None
    if report is not None:
        measured = Measured.read(store, planned.evaluation)
        keep(root, measured, measured.choose(limits), limits, folder, lambda line: typer.echo(f"  {line}", err=True))
    else:
        typer.echo(message("starting Prefect, MLflow and torch …"), err=True)
        from flows.process.execute import execute

        config = {
            "model": requested.model.reference,
            "within": within,
            "budget": budget,
            "dataset": dataset,
            "routes": list(route or ()),
            "runtimes": list(runtime or ()),
            "to": str(folder),
            "threads": threads,
        }
        result = execute(config, root, "compress")
        for name, why in result["left_out"].items():
            console.print(message("{name} was left out: {reason}", name=name, reason=why), markup=False, soft_wrap=True)
        report, measured = Path(result["report"]), Measured.read(store, result["evaluation"])
    choice = measured.choose(limits)
    show_forms(measured, choice)
    console.print(measured.sentence(limits, choice), markup=False, soft_wrap=True, style="bold")
    console.print(
        message("kept     {folder}: cursus predict --model {folder}", folder=folder), markup=False, soft_wrap=True
    )
    page = localized_page(report.with_name("compression.html"))
    console.print(message("report   {path}", path=page), markup=False, soft_wrap=True)
    if not choice.within:
        raise typer.Exit(NOTHING_WITHIN)


def _finished(root: Path, store: Store, planned: CompressionPlan, within: str) -> Path | None:
    """The report of an earlier run with the same steps and limits; None where there is none."""
    from flows.cli.finished import finished_report
    from pipelines.reports.score_tables import EXECUTION
    from pipelines.reports.sections.compression import WITHIN

    report = finished_report(root, store, planned.plan, smoke=False)
    if report is None:
        return None
    execution = json.loads(report.with_name(EXECUTION).read_text(encoding="utf-8"))
    return report if execution["parameters"].get(WITHIN) == within else None


def show_routes(planned: CompressionPlan) -> None:
    """Print the routes with what they are expected to leave and to take, and why others are not tried."""
    from pipelines.judging.limits import megabytes

    table = _table("route", "what it does", "paper", "on disk", "minutes", "")
    table.add_row(
        "teacher", message("the model as it is, in every runtime of this machine"), "", megabytes(planned.teacher_bytes)
    )
    for one in sorted(planned.routes, key=lambda one: -one.bytes):
        state = "" if one.taken else message("over the budget")
        table.add_row(
            one.route.name,
            one.route.description,
            one.route.paper,
            f"{'' if one.todo == 0 else '~'}{megabytes(one.bytes)}",
            f"{one.seconds / 60:.1f}",
            state if one.todo or state else message("in the store"),
        )
    console.print(table)
    for name, why in planned.compression.unfit.items():
        console.print(message("{name} does not fit: {reason}", name=name, reason=why), markup=False, soft_wrap=True)
    if not planned.measured:
        names = ", ".join(sorted(planned.left_out))
        counts = {"taken": len(planned.compression.routes), "total": len(planned.routes)}
        line = message(
            "{taken} of {total} routes, about {minutes:.1f} minutes with measuring{over}",
            **counts,
            minutes=planned.seconds / 60,
            over=message("; over the budget: {names}", names=names) if names else "",
        )
        console.print(line, markup=False, soft_wrap=True)


def show_forms(measured: Measured, choice: Choice) -> None:
    """Print what was measured of the forms that no other beats, the smallest first."""
    from pipelines.judging.front import not_dominated
    from pipelines.judging.limits import megabytes
    from pipelines.reports.elements.wording import difference, measured_in, metric_name, score

    metric = measured.metric
    table = _table("route", "runtime", "on disk", "ms", "ms, 32", metric_name(metric), measured_in(metric), "95 %")
    teacher = measured.forms[0]
    best = not_dominated(measured.forms)
    for one in dict.fromkeys([*best, choice.form, teacher]):
        table.add_row(
            one.stage,
            one.runtime,
            megabytes(one.bytes),
            f"{one.milliseconds:.2f}",
            f"{one.milliseconds_of_a_batch:.1f}",
            score(one.score, metric),
            difference(one.difference, metric),
            message(
                "{low} to {high}",
                low=difference(one.difference_low, metric),
                high=difference(one.difference_high, metric),
            ),
            style="bold" if one == choice.form else "",
        )
    console.print(table)
    others = len(measured.forms) - len(best)
    line = "{count} further forms are beaten by one of these in size, time and score"
    console.print(message(line, count=others), markup=False)


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name in columns:
        left = name in ("route", "what it does", "paper", "runtime", "")
        table.add_column(message(name) if name else "", justify="left" if left else "right")
    return table
