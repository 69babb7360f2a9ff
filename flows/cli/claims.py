"""`cursus claims`: measure every claim that has no record or a stale one, cheapest first."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Column, Table

from flows.cli.exit_status import handle_errors
from flows.cli.planning_progress import planning_progress
from pipelines.errors import CursusError, RecipeError
from pipelines.messages.translation import message
from tasks.environment import private_state_folder, project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from tasks.records.outstanding import EstimatedClaim, Failure, OutstandingClaim

console = Console(highlight=False)
FAILURES = "claims-failures.jsonl"
"""File of the state folder with a line for every measurement that failed."""
UNITS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh])")


@handle_errors
def claims(
    only: Annotated[
        str | None, typer.Option(help="A pattern of claims: 'crf/*', or a recipe; all when not given.")
    ] = None,
    within: Annotated[
        str | None, typer.Option(help="Start no further claim after this time: 40m, 3h. A started one is finished.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Processor cores for training.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan with its estimates, and stop.")] = False,
) -> None:
    """Measure all claims that have no record, or one older than the code that it measured: cheapest first.

    What is measured stays measured, however the command ends: it goes on where it stopped.

    Example: cursus claims --only 'crf/*' --within 40m
    """
    root, budget = project_root(), None if within is None else seconds_of(within)
    prepare_environment(root)
    from tasks.records.outstanding import outstanding_claims

    console.print(message("reading the claims and their records …"))
    outstanding = outstanding_claims(root, only)
    if not outstanding:
        console.print(message("every claim has a record of the present code"))
        return
    console.print(message("claims to measure: {count}; planning …", count=len(outstanding)))
    planned, failures = planned_claims(root, outstanding, threads)
    show_claims(console, planned, failures)
    if dry_run:
        return
    failures += measure_claims(root, planned, threads, budget, _measure)
    for failure in failures:
        line = message("not measured  {claim}: {reason}", claim=failure.claim.label, reason=failure.reason)
        console.print(line, style="red", markup=False)
    if failures:
        raise typer.Exit(1)


def seconds_of(duration: str) -> float:
    """`40m`, `1.5h` or `90s` as seconds. Raises RecipeError for anything else."""
    match = _DURATION.fullmatch(duration.strip())
    if match is None:
        raise RecipeError(f"{duration!r} is no duration: write 90s, 40m or 3h")
    return float(match[1]) * UNITS[match[2]]


def planned_claims(
    root: Path, outstanding: Sequence[OutstandingClaim], threads: int
) -> tuple[list[EstimatedClaim], list[Failure]]:
    """`estimate_claims`, which says how far it is."""
    from flows.cli.claim_estimates import estimate_claims

    with planning_progress(console) as show:
        return estimate_claims(
            root,
            outstanding,
            threads,
            lambda done: show(message("planned {done} of {count} claims", done=done, count=len(outstanding))),
        )


def show_claims(output: Console, planned: Sequence[EstimatedClaim], failures: Sequence[Failure]) -> None:
    """Print what will be measured, what each adds to the time, and the total; then what cannot be."""
    heads = [message(one) for one in ("claim", "why", "data", "steps", "minutes", "cumulative")]
    table = Table(
        Column(heads[0], overflow="fold"), *heads[1:], title=message("claims to measure"), title_justify="left"
    )
    known: set[str] = set()
    prepared: dict[str, float] = {}
    total = 0.0
    for one in planned:
        new = {step: seconds for step, seconds in one.steps.items() if step not in known}
        data = {name: seconds for name, seconds in one.preparations.items() if name not in prepared}
        known |= new.keys()
        prepared |= data
        added = sum(new.values()) + sum(data.values())
        total += added
        state = message("not prepared: estimated" if one.preparations else "prepared")
        times = [f"{seconds / 60:.1f}" for seconds in (added, total)]
        table.add_row(one.claim.label, message(one.claim.reason), state, str(len(new)), *times)
    output.print(table)
    line = "claims: {count}, about {minutes:.1f} minutes in total; steps that several share are counted once"
    output.print(message(line, count=len(planned), minutes=total / 60))
    if prepared:
        line = (
            "of these, {minutes:.1f} minutes prepare data ({datasets}); each dataset is prepared when the first claim "
            "on it begins, and until then its sizes and the time of its steps are estimated from its settings"
        )
        datasets, minutes = ", ".join(sorted(prepared)), sum(prepared.values()) / 60
        output.print(message(line, minutes=minutes, datasets=datasets), soft_wrap=True)
    for failure in failures:
        line = message("cannot be measured here  {claim}: {reason}", claim=failure.claim.label, reason=failure.reason)
        output.print(line, markup=False)


def measure_claims(
    root: Path,
    planned: Sequence[EstimatedClaim],
    threads: int,
    budget: float | None,
    measure: Callable[[Path, OutstandingClaim, int], None],
    clock: Callable[[], float] = time.monotonic,
) -> list[Failure]:
    """Measure one claim after the other; none is started after `budget` seconds (None: no limit).

    A claim that fails is recorded and does not stop the others.
    """
    from tasks.records.outstanding import Failure

    began, failures = clock(), []
    for number, one in enumerate(planned):
        if budget is not None and clock() - began >= budget:
            line = "the time is over; claims that are left: {count}; the same command goes on"
            console.print(message(line, count=len(planned) - number))
            break
        console.print(f"[{number + 1}/{len(planned)}] {one.claim.label}", markup=False, style="bold")
        try:
            measure(root, one.claim, threads)
        except (CursusError, SystemExit, typer.Exit) as error:
            reason = str(error) if isinstance(error, CursusError) else "an unexpected error, printed above"
            failures.append(Failure(one.claim, reason))
            _write_failure(root, failures[-1])
            console.print(message("failed: {reason}", reason=reason), style="red", markup=False)
    return failures


def _measure(root: Path, claim: OutstandingClaim, threads: int) -> None:
    from flows.cli.claim import measure

    measure(root, console, claim.name, claim.data, claim.variants, threads=threads)


def _write_failure(root: Path, failure: Failure) -> None:
    line = {"claim": failure.claim.label, "at": datetime.now(UTC).isoformat(timespec="seconds"), "why": failure.reason}
    with (private_state_folder(root) / FAILURES).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
