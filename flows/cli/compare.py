"""`cursus compare`: executions side by side, with paired differences of their models."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from flows.cli.exit_status import handle_errors
from flows.cli.store_in_use import hold
from pipelines.errors import CursusError
from pipelines.messages.translation import message, translatable
from tasks.environment import MLFLOW_PORT, project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from tasks.records.comparisons import ComparedExecution

console = Console(highlight=False)
COSTS: Mapping[str, Callable[[float], str]] = {
    "cost/seconds": lambda seconds: f"{seconds:,.1f} s",
    "cost/tokens": lambda tokens: f"{tokens:,.0f}",
    "cost/bytes": lambda size: f"{size / 1e6:,.2f} MB",
}


@handle_errors
def compare(
    executions: Annotated[
        list[str],
        typer.Argument(help="Two or more executions: ids, or parts of them such as the last four characters."),
    ],
    open_page: Annotated[
        bool | None,
        typer.Option("--open/--no-open", help="Open MLflow's page in the browser; on a terminal when not given."),
    ] = None,
) -> None:
    """Compare executions side by side: what was requested, scores with intervals, cost; the first is the reference.

    Where models answered the same test examples, their differences have paired intervals. While the servers of `cursus
    up` run, MLflow's page with the same comparison opens.

    Example: cursus compare 3f2a 81c0
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.records.comparisons import find_execution

    if len(executions) < 2:
        raise CursusError("name two executions or more: `cursus compare A B`; reports/index.html lists them")
    store = Store(store_folder(root))
    hold(store)
    compared = [find_execution(root, store, reference) for reference in executions]
    if twice := next((one.id for one in compared if sum(one.id == other.id for other in compared) > 1), None):
        raise CursusError(f"{twice} is named twice; name different executions")
    console.print(_side_by_side(compared))
    for other in compared[1:]:
        _show_differences(compared[0], other)
    _show_page(root, [one.id for one in compared], sys.stdout.isatty() if open_page is None else open_page)


SIDES = {
    "best": translatable("best model"),
    "served": translatable("served model"),
    "baseline": translatable("baseline model"),
}
"""Side of a headline → its row."""


def _side_by_side(compared: Sequence[ComparedExecution]) -> Table:
    """A row for each parameter, score and cost; a parameter that differs is marked."""
    table = Table("", *(escape(one.id) for one in compared), title=message("executions"), title_justify="left")
    parameters = [one.parameters for one in compared]
    for key in dict.fromkeys(key for one in parameters for key in one):
        values = [one.get(key, "") for one in parameters]
        table.add_row(Text(key), *map(Text, values), style="bold" if len(set(values)) > 1 else None)
    for side in SIDES:
        names = [one.headline.models.get(side, "") for one in compared]
        if any(names):
            table.add_section()
            table.add_row(Text(message(SIDES[side])), *map(Text, names))
            for key in _scores(compared, side):
                table.add_row(Text(key), *(Text(_score(one, key)) for one in compared))
    table.add_section()
    for key, write in COSTS.items():
        costs = [one.headline.metrics.get(key) for one in compared]
        table.add_row(Text(key), *("" if one is None else write(one) for one in costs))
    return table


def _scores(compared: Sequence[ComparedExecution], side: str) -> list[str]:
    keys = dict.fromkeys(key for one in compared for key in one.headline.metrics if key.startswith(f"{side}/"))
    return [key for key in keys if not key.endswith(("_low", "_high"))]


def _score(one: ComparedExecution, key: str) -> str:
    metrics = one.headline.metrics
    if key not in metrics:
        return ""
    return f"{metrics[key]:.3f} [{metrics[f'{key}_low']:.3f}, {metrics[f'{key}_high']:.3f}]"


def _show_differences(first: ComparedExecution, second: ComparedExecution) -> None:
    """Print the paired differences of two executions, or why there are none."""
    from pipelines.reports.elements.table import verdict_text
    from tasks.records.comparisons import paired_differences

    differences, reason = paired_differences(first, second)
    if reason is not None:
        line = message(
            "{second} minus {first}: no paired interval, {reason}", second=second.id, first=first.id, reason=reason
        )
        console.print(line, soft_wrap=True, markup=False)
        return
    title = message(
        "{second} minus {first}, paired over the same test examples, with 95 % intervals",
        second=second.id,
        first=first.id,
    )
    heads = (message("models"), message("metric"), message("examples"), message("difference"), message("verdict"))
    table = Table("", *heads, title=Text(title), title_justify="left")
    for one in differences:
        interval = one.interval
        table.add_row(
            message(SIDES[one.side]) if one.side in SIDES else one.side,
            Text(message("{second} minus {first}", second=one.second, first=one.first)),
            Text(f"{one.task}/{one.metric}" if one.task else one.metric),
            f"{one.items:,}",
            f"{interval.value:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]",
            verdict_text(one.verdict),
        )
    console.print(table)


def _show_page(root: Path, executions: Sequence[str], opens: bool) -> None:
    """Print the address of MLflow's page with the same comparison, and open it while its server runs."""
    from tasks.servers.services import running
    from tasks.tracking.execution_runs import comparison_page
    from tasks.tracking.recorder import Recorder

    recorder = Recorder(root)
    try:
        page = comparison_page(recorder, executions)
    except Exception as error:
        if not recorder.is_unavailable(error):
            raise
        console.print(message("mlflow   does not answer ({error})", error=error), soft_wrap=True, markup=False)
        return
    if page is None:
        console.print(message("mlflow   has not recorded these executions; the next run sends what it lacks"))
        return
    services = running(root)
    address = f"{services.mlflow_url if services else f'http://127.0.0.1:{MLFLOW_PORT}'}/{page}"
    after = "" if services else message("   (after `cursus up`)")
    console.print(f"mlflow   {address}{after}", soft_wrap=True, markup=False)
    if services is not None and opens:
        webbrowser.open(address)
