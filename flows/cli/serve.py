"""`cursus serve`: a model behind HTTP, with a page to try it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from flows.cli.exit_status import handle_errors
from flows.cli.options import Dataset, model_names
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

console = Console(highlight=False)


@handle_errors
def serve(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A dataset or registered model with an alias, a stage, a fingerprint's first digits, or a folder; the "
            "dataset's champion, or else its latest model, when not given.",
            autocompletion=model_names,
        ),
    ] = None,
    dataset: Dataset = None,
    task: Annotated[
        str | None, typer.Option(help="Which of its tasks to serve, for a model of several (recipes with `lines`).")
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for other machines, too.")] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="8000, or a free one where that is taken, when not given.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor threads; all when not given.")] = None,
    batch: Annotated[int, typer.Option(min=1, help="Examples that are computed together at most.")] = 32,
    wait_ms: Annotated[float, typer.Option(min=0, help="How long a request waits for others to join it.")] = 2.0,
) -> None:
    """Serve a model: POST /predict, a page to try it, /health, /metrics and /openapi.json. Needs the project's account.

    Example: cursus serve reviews@champion --port 8080
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.hardware import cores
    from tasks.serving.batching import BatchLimits
    from tasks.serving.server import ServerOptions
    from tasks.serving.server import serve as run

    options = ServerOptions(host, port, threads or cores(), BatchLimits(largest=batch, wait_ms=wait_ms))
    run(root, model, dataset, task, options, lambda line: console.print(line, markup=False, soft_wrap=True))
