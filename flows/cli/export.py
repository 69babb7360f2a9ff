"""`cursus export`: convert a model to the runtime that is fastest on this machine, with the measurements."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from flows.cli.exit_status import handle_errors
from flows.cli.writing import writing
from pipelines.messages.translation import message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from pipelines.serving.exported import Export, ExportMeasurement

BATCHES = {"all": None, "batch1": 1, "batch32": 32}


@handle_errors
def export(
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            help="The folder to write; an earlier export there is replaced. A name that ends in .arpa: counted "
            "n-grams, as one file.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Argument(
            help="A registered model, a stage, a fingerprint's first digits, or a model folder; the dataset's "
            "champion, or else its latest model, when not given."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--data", help="The dataset whose model is exported when none is named.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Processor threads for serving.")] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A runtime to choose from (docs/serving.md); repeatable. All when not given."),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Real texts, one per line, to compare answers on; those of the model's lineage when not given."
        ),
    ] = None,
    min_cosine: Annotated[
        float, typer.Option(help="Smallest allowed cosine between an answer and that of float32, over all texts.")
    ] = 0.997,
    max_score_loss: Annotated[
        float, typer.Option(help="Largest allowed loss of the task's metric on the test table.")
    ] = 0.005,
    decide: Annotated[
        Literal["all", "batch1", "batch32"], typer.Option("--for", help="The batch sizes whose speed decides.")
    ] = "all",
    task: Annotated[
        str | None, typer.Option(help="Which of its tasks to export, for a model of several (recipes with `lines`).")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Timed calls with one text; a fifth as many with 32.")] = 30,
) -> None:
    """Export a model for serving: convert it to every runtime, check each against float32, time it, and keep the
    fastest.

    Example: cursus export reviews-text-classification --to served
    """
    # threads of one runtime that spin while they wait would slow the next one down; read when torch is imported
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from pipelines.models.text_network import OutputKind
    from pipelines.serving.exporting.arpa import SUFFIX, export_arpa
    from pipelines.serving.exporting.export import ExportLimits
    from pipelines.serving.exporting.export import export as write
    from tasks.datasets.planning import store_folder
    from tasks.models.default import default_model
    from tasks.models.exporting import material_of, source_of

    if model is None:
        chosen = default_model(root, Store(store_folder(root)), dataset)
        typer.echo(message("model    {why}", why=f"{chosen.why} {chosen.fingerprint[:8]}"), err=True)
        model = chosen.fingerprint
    with TemporaryDirectory(prefix="cursus-task-") as scratch:
        source = source_of(root, model, task, Path(scratch))
        if to.suffix == SUFFIX:
            with writing(to):
                to.parent.mkdir(parents=True, exist_ok=True)
                export_arpa(source.folder, to)
            typer.echo(message("wrote the n-grams of {model} to {file}", model=source.title, file=to))
            return
        limits = ExportLimits(min_cosine, max_score_loss, threads, rounds, BATCHES[decide], tuple(only or ()))
        typer.echo(message("{model}: reading texts to compare answers on", model=source.title), err=True)
        material = material_of(root, source, texts)
        with writing(to):
            record = write(
                source.folder,
                to,
                material,
                limits,
                model=model,
                fingerprint=source.fingerprint,
                report_progress=lambda line: typer.echo(f"  {line}", err=True),
            )
    console = Console(highlight=False)
    show(console, record)
    opens = (
        f"cursus predict --model {to}"
        if record.output != OutputKind.VECTOR
        else "pipelines.serving.answering.inference.load_vectors"
    )
    line = message("exported {model} to {folder}; load it with {opens}", model=source.title, folder=to, opens=opens)
    console.print(line, markup=False, soft_wrap=True)


def show(console: Console, record: Export) -> None:
    """Print one row per runtime: its accuracy, size and speed, and why it was or was not chosen."""
    from pipelines.serving.exporting.measures import overall

    first = next(iter(record.measured.values()))
    shapes = [f"{latency.rows}x{latency.tokens}" for latency in first.latency]
    machine = f"{record.machine.processor}, {record.machine.threads} thread(s)"
    title = f"{machine}; median ms ± half the p10–p90 range, and speed-up over torch in float32"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("runtime", no_wrap=True)
    for name in ("cosine", *([record.checked["metric"]] if record.checked["metric"] else []), "MB", *shapes, "mean"):
        table.add_column(name, justify="right", no_wrap=True)
    order = sorted(record.measured.items(), key=lambda item: -overall(item[1].latency))
    for name, measured in order:
        chosen = name == record.runtime.name
        table.add_row(
            *_cells(name, measured, overall(measured.latency)),
            style="bold" if chosen else "dim" if measured.refused else "",
        )
    console.print(table)
    for name, measured in order:
        if measured.refused:
            line = message("{runtime} is not eligible: {reason}", runtime=name, reason=measured.refused)
            console.print(line, markup=False, soft_wrap=True)
    for name, why in record.left_out.items():
        line = message("{runtime} was left out: {reason}", runtime=name, reason=why)
        console.print(line, markup=False, soft_wrap=True)
    line = message("chosen {runtime}: {rule}", runtime=record.runtime.name, rule=record.rule)
    console.print(line, markup=False, soft_wrap=True)


def _cells(name: str, measured: ExportMeasurement, mean: float) -> list[str]:
    score = [] if measured.score is None else [f"{measured.score:.3f}"]
    timed = [
        f"{each.median_ms:.1f}\n±{(each.p90_ms - each.p10_ms) / 2:.1f}\n{each.speedup:.1f}x"
        for each in measured.latency
    ]
    return [name, f"{measured.cosine_least:.4f}", *score, f"{measured.bytes / 1e6:.1f}", *timed, f"{mean:.2f}x"]
