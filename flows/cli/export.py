"""`cursus export`: a model in the form that this machine computes fastest, with the figures that say so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from flows.cli.exit_status import told
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from pipelines.serving.exported import Export, ExportMeasurement

BATCHES = {"all": None, "batch1": 1, "batch32": 32}


@told
def export(
    model: Annotated[
        str, typer.Argument(help="A registered model, a stage, a fingerprint's first digits, or a model folder.")
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to write; an earlier export there is replaced.")],
    threads: Annotated[int, typer.Option(min=1, help="Processor threads that it will be served on.")] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A runtime to choose from (docs/serving.md); repeatable. All when not given."),
    ] = None,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="Real texts, one a line, to compare answers on; those of the model's lineage when not given."
        ),
    ] = None,
    min_cosine: Annotated[
        float, typer.Option(help="Least cosine of an answer with that of float32, on any of the texts.")
    ] = 0.997,
    max_score_loss: Annotated[
        float, typer.Option(help="Most that the task's metric may lose on the test table.")
    ] = 0.005,
    decide: Annotated[
        Literal["all", "batch1", "batch32"], typer.Option("--for", help="The batches whose speed decides.")
    ] = "all",
    rounds: Annotated[int, typer.Option(min=1, help="Timed calls with one text; a fifth as many with 32.")] = 30,
) -> None:
    """Export a model for serving: every runtime is converted, checked against float32 and timed; the fastest is kept.

    Example: cursus export cursus-classifier --to served
    """
    # threads that spin while they wait make those of the next runtime wait; read when torch is imported
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    root = project_root()
    prepare_environment(root)
    from pipelines.models.text_network import OutputKind
    from pipelines.serving.exporting.export import ExportLimits
    from pipelines.serving.exporting.export import export as write
    from tasks.models.exporting import material_of, source_of

    source = source_of(root, model)
    limits = ExportLimits(min_cosine, max_score_loss, threads, rounds, BATCHES[decide], tuple(only or ()))
    typer.echo(f"{source.title}: reading texts to compare answers on", err=True)
    record = write(
        source.folder,
        to,
        material_of(root, source, texts),
        limits,
        model=model,
        fingerprint=source.fingerprint,
        say=lambda line: typer.echo(f"  {line}", err=True),
    )
    console = Console(highlight=False)
    show(console, record)
    opens = (
        f"cursus predict --model {to}"
        if record.output != OutputKind.VECTOR
        else "pipelines.serving.answering.inference.load_vectors"
    )
    console.print(f"exported {source.title} to {to}; {opens} answers from it", markup=False, soft_wrap=True)


def show(console: Console, record: Export) -> None:
    """A line a runtime: what it answers, what it takes, why it was or was not chosen."""
    from pipelines.serving.exporting.measures import overall

    first = next(iter(record.measured.values()))
    shapes = [f"{latency.rows}x{latency.tokens}" for latency in first.latency]
    machine = f"{record.machine.processor}, {record.machine.threads} thread(s)"
    title = f"{machine}; ms ± half of p10 to p90, and times as fast as torch in float32"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("runtime", no_wrap=True)
    for name in ("cosine", *([record.checked["metric"]] if record.checked["metric"] else []), "MB", *shapes, "mean"):
        table.add_column(name, justify="right", no_wrap=True)
    order = sorted(record.measured.items(), key=lambda item: -overall(item[1].latency))
    for name, found in order:
        chosen = name == record.runtime.name
        table.add_row(
            *_cells(name, found, overall(found.latency)), style="bold" if chosen else "dim" if found.refused else ""
        )
    console.print(table)
    for name, found in order:
        if found.refused:
            console.print(f"{name} may not be chosen: {found.refused}", markup=False, soft_wrap=True)
    for name, why in record.left_out.items():
        console.print(f"{name} was left out: {why}", markup=False, soft_wrap=True)
    console.print(f"chosen {record.runtime.name}: {record.rule}", markup=False, soft_wrap=True)


def _cells(name: str, found: ExportMeasurement, mean: float) -> list[str]:
    score = [] if found.score is None else [f"{found.score:.3f}"]
    timed = [
        f"{each.median_ms:.1f}\n±{(each.p90_ms - each.p10_ms) / 2:.1f}\n{each.speedup:.1f}x" for each in found.latency
    ]
    return [name, f"{found.cosine_least:.4f}", *score, f"{found.bytes / 1e6:.1f}", *timed, f"{mean:.2f}x"]
