"""`cursus claims`: measure every claim that has no record or a stale one, cheapest first."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from flows.cli.exit_status import handle_errors
from pipelines.errors import CursusError, RecipeError
from tasks.environment import private_state_folder, project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from tasks.records.outstanding import OutstandingClaim

console = Console(highlight=False)
FAILURES = "claims-failures.jsonl"
"""File of the state folder with a line for every measurement that failed."""
UNITS = {"s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smh])")


@dataclass(frozen=True)
class EstimatedClaim:
    """A claim to measure with the steps that it needs and the store lacks."""

    claim: OutstandingClaim
    steps: dict[str, float]
    """Fingerprint → estimated seconds."""

    @property
    def seconds(self) -> float:
        """Estimated seconds of all of its steps, also those that other claims share."""
        return sum(self.steps.values())


@dataclass(frozen=True)
class Failure:
    """A claim that could not be planned or measured."""

    claim: OutstandingClaim
    reason: str


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

    outstanding = outstanding_claims(root, only)
    if not outstanding:
        console.print("every claim has a record of the present code")
        return
    console.print(f"claims to measure: {len(outstanding)}; planning …")
    planned, failures = estimate_claims(root, outstanding, threads)
    show_claims(console, planned, failures)
    if dry_run:
        return
    failures += measure_claims(root, planned, threads, budget, _measure)
    for failure in failures:
        console.print(f"not measured  {failure.claim.label}: {failure.reason}", style="red", markup=False)
    if failures:
        raise typer.Exit(1)


def seconds_of(duration: str) -> float:
    """`40m`, `1.5h` or `90s` as seconds. Raises RecipeError for anything else."""
    match = _DURATION.fullmatch(duration.strip())
    if match is None:
        raise RecipeError(f"{duration!r} is no duration: write 90s, 40m or 3h")
    return float(match[1]) * UNITS[match[2]]


def estimate_claims(
    root: Path, outstanding: Sequence[OutstandingClaim], threads: int
) -> tuple[list[EstimatedClaim], list[Failure]]:
    """The claims with estimates, cheapest first, and those that cannot be planned; prepares their data."""
    from flows.cli.preview import Previewer
    from pipelines.lineage.store import Store
    from tasks.datasets.claim_requests import ClaimRequest
    from tasks.datasets.planning import store_folder
    from tasks.estimates.duration import estimate_run

    store = Store(store_folder(root))
    records = list(store.all())
    planned, failures = [], []
    for claim in outstanding:
        try:
            requested = ClaimRequest.resolve(root, claim.name, claim.data, claim.variants)
            steps: dict[str, float] = {}
            for part in requested.parts:
                requests = [requested.of_part(root, part)]
                requests += [requested.grid(root, part)] if requested.claim.tune else []
                for request in requests:
                    preview = Previewer(root, request, store, console.print).before(only=True)
                    estimate = estimate_run(root, preview.plan, preview.prepared, preview.stored, records, threads)
                    steps |= {one.fingerprint: estimate.steps[one.fingerprint].seconds for one in preview.todo}
            planned.append(EstimatedClaim(claim, steps))
        except CursusError as error:
            failures.append(Failure(claim, str(error)))
    return sorted(planned, key=lambda one: one.seconds), failures


def show_claims(output: Console, planned: Sequence[EstimatedClaim], failures: Sequence[Failure]) -> None:
    """Print what will be measured, what each adds to the time, and the total; then what cannot be."""
    table = Table("claim", "why", "steps", "minutes", "in all", title="claims to measure", title_justify="left")
    known: set[str] = set()
    total = 0.0
    for one in planned:
        new = {step: seconds for step, seconds in one.steps.items() if step not in known}
        known |= new.keys()
        total += sum(new.values())
        minutes = f"{sum(new.values()) / 60:.1f}"
        table.add_row(one.claim.label, one.claim.reason, str(len(new)), minutes, f"{total / 60:.1f}")
    output.print(table)
    output.print(f"in all {len(planned)}, about {total / 60:.1f} minutes; steps that several share are counted once")
    for failure in failures:
        output.print(f"cannot be measured here  {failure.claim.label}: {failure.reason}", markup=False)


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
    began, failures = clock(), []
    for number, one in enumerate(planned):
        if budget is not None and clock() - began >= budget:
            console.print(f"the time is over; claims that are left: {len(planned) - number}; the same command goes on")
            break
        console.print(f"[{number + 1}/{len(planned)}] {one.claim.label}", markup=False, style="bold")
        try:
            measure(root, one.claim, threads)
        except (CursusError, SystemExit, typer.Exit) as error:
            reason = str(error) if isinstance(error, CursusError) else "an unexpected error, printed above"
            failures.append(Failure(one.claim, reason))
            _write_failure(root, failures[-1])
            console.print(f"failed: {reason}", style="red", markup=False)
    return failures


def _measure(root: Path, claim: OutstandingClaim, threads: int) -> None:
    from flows.cli.claim import measure

    measure(root, console, claim.name, claim.data, claim.variants, threads=threads)


def _write_failure(root: Path, failure: Failure) -> None:
    line = {"claim": failure.claim.label, "at": datetime.now(UTC).isoformat(timespec="seconds"), "why": failure.reason}
    with (private_state_folder(root) / FAILURES).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")
