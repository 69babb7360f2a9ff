"""`cursus lattice`: measure the effect of each stage over every subset of the stages before fine-tuning."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from flows.cli.exit_status import handle_errors
from flows.cli.store_in_use import hold
from pipelines.messages.translation import localized_page, message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

console = Console(highlight=False)


@handle_errors
def lattice(
    recipe: Annotated[
        str | None, typer.Argument(help="A recipe (cursus recipes); the dataset's own when not given.")
    ] = None,
    dataset: Annotated[str | None, typer.Option("--data", help="A dataset of params.yaml.")] = None,
    variant: Annotated[list[str] | None, typer.Option("--variant", help="A variant of the recipe; repeatable.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Fine-tuning seeds of every path; 5 when not given.")] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            "--size", min=1, help="Also with this number of labelled examples, for learning curves; repeatable."
        ),
    ] = None,
    smoke: Annotated[
        bool, typer.Option("--smoke", help="Tiny sizes and budgets: only tests that everything runs.")
    ] = False,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor cores for training.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan, and the smallest detectable difference.")
    ] = False,
) -> None:
    """Measure which stage helps: every subset of the stages before fine-tuning, as one tree, over several seeds.

    Example: cursus lattice regime --data reviews --seeds 5 --size 50 --size 200
    """
    root = project_root()
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    prepare_environment(root)
    from flows.cli.display import show_detectable_difference, show_plan
    from flows.cli.finished import finished_report
    from flows.cli.preview import Previewer
    from pipelines.lineage.store import Store
    from pipelines.recipe.lattice import SEEDS
    from tasks.datasets.planning import lattice_request, load_recipe, store_folder

    arguments: dict[str, Any] = {
        "dataset": dataset,
        "recipe": recipe,
        "variants": variant or [],
        "seeds": seeds,
        "sizes": size or [],
        "smoke": smoke,
    }
    request = lattice_request(root, **arguments)
    load_recipe(root, request)  # reports errors before the data is prepared
    typer.echo(
        message("lattice of {recipe} on {dataset}: preparing the data", recipe=request.recipe, dataset=request.dataset),
        err=True,
    )
    store = Store(store_folder(root))
    hold(store)
    previewer = Previewer(root, request, store, lambda line: typer.echo(line, err=True))
    preview = previewer.before(only=dry_run)
    show_detectable_difference(console, preview.prepared, seeds or SEEDS)
    if dry_run:
        show_plan(console, root, preview.plan, preview.prepared, preview.stored, store, threads)
        return
    todo = preview.todo
    report = None if todo else finished_report(root, store, preview.plan, smoke=smoke)
    if report is None:
        typer.echo(
            message(
                "{todo} of {steps} steps to compute; starting Prefect, MLflow and torch …",
                todo=len(todo),
                steps=len(preview.plan.steps),
            ),
            err=True,
        )
        from flows.process.execute import execute

        report = Path(execute({**arguments, "threads": threads}, root, flow="lattice")["report"])
        preview = previewer.after(preview)
    page = localized_page(report.with_name("lattice.html"))
    console.print(message("report   {path}", path=page), soft_wrap=True)
    if smoke:
        console.print(message("every step ran; a smoke run measures nothing, so it is not recorded"))
        return
    from tasks.records.lattices import PAGE, record_lattice
    from tasks.records.systems import write_page
    from tasks.stages.code import code_of

    _show_stages(record_lattice(root, request.variants, preview.plan, store, preview.prepared, code_of(root)))
    console.print(message("recorded {path}", path=root / PAGE), soft_wrap=True)
    write_page(root)


def _show_stages(record: dict[str, Any]) -> None:
    from pipelines.reports.elements.table import verdict_text
    from pipelines.reports.elements.wording import difference, measured_in
    from pipelines.reports.sections.lattice import settled_by

    measured = record["measured"]
    metric = measured["metric"]
    heads = [
        message("95 % interval"),
        message("p, Holm"),
        message("minutes"),
        message("verdict"),
        message("settled by"),
    ]
    table = Table(message("stage"), measured_in(metric), *heads)
    for effect in measured["effects"]:
        if len(effect["of"]) == 1:
            (factor,) = effect["of"]
            cost = record["factor_costs"].get(factor)
            table.add_row(
                factor,
                difference(effect["difference"], metric),
                message(
                    "{low} to {high}", low=difference(effect["low"], metric), high=difference(effect["high"], metric)
                ),
                f"{effect['p_holm']:.3f}",
                f"{cost['minutes']:.1f}" if cost else "",
                verdict_text(effect["verdict"]),
                settled_by(effect),
            )
    console.print(table)
