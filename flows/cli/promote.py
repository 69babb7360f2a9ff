"""`cursus promote` and `cursus rollback`: which version of a registered model is the champion."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from flows.cli.exit_status import told
from pipelines.errors import CursusError
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from tasks.decisions.record import Judge, Promotion

COLOURS = {"met": "green", "missed": "red", "undecided": "yellow", "not asked": "dim"}
NOT_PROMOTED = 1
"""Exit status where the model was judged, and the alias stayed where it was."""

console = Console(highlight=False)

Decide = Literal["promote", "reject"]


@told
def promote(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A registered model, a stage, or a fingerprint's first digits; what the latest run ended in when not given."
        ),
    ] = None,
    to: Annotated[str, typer.Option(help="The alias that moves to it.")] = "champion",
    alone: Annotated[
        bool, typer.Option("--alone", help="Judge it by itself, without comparing it with the present champion.")
    ] = False,
    decide: Annotated[
        Decide | None, typer.Option(help="What is decided where the verdict is INCONCLUSIVE; with --reason and --name.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; recorded on the model version.")] = None,
    name: Annotated[str | None, typer.Option(help="Who decides; recorded on the model version.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor cores for the judging step.")] = None,
) -> None:
    """Judge a model against the champion on the same test examples: GO makes it champion, NO-GO does not.

    INCONCLUSIVE waits for a person: in Prefect's UI where `cursus up` runs, else here. Exit status 0 when the alias is on the
    model, 1 when it is not, 2 for a mistake. What is asked: params.yaml, promotion (docs/promotion.md).

    Example: cursus promote cursus-classifier
    """
    root = project_root()
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")  # this command tells of errors itself
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    if decide is not None and not ((reason or "").strip() and (name or "").strip()):
        raise CursusError(f"--decide {decide} needs --reason and --name: both are recorded on the model version")
    prepare_environment(root)
    from flows.process.execute import execute
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.datasets.prepared import open_prepared
    from tasks.decisions.record import Promotion
    from tasks.promotion.contest import open_contest
    from tasks.promotion.judgement import conclude
    from tasks.promotion.settings import PromotionSettings

    store = Store(store_folder(root))
    PromotionSettings.load(root)  # what cannot be judged is told before anything starts
    contest = open_contest(root, store, model, to, compare=not alone)
    candidate = contest.candidate
    if contest.standing.champion == candidate.record.fingerprint:
        console.print(f"{candidate.name} is the {to} of {contest.model} already", markup=False)
        return
    held = contest.champion.name if contest.champion else "no champion"
    typer.echo(f"{contest.model}: {candidate.name} against {held}; starting Prefect, MLflow and torch …", err=True)
    served = "PREFECT_API_URL" in os.environ and decide is None
    result = execute(
        {
            "model": candidate.record.fingerprint,
            "to": to,
            "alone": alone,
            "undecided": "ask" if served else "leave",
            "threads": threads,
        },
        root,
        "promote",
    )
    promotion = Promotion.model_validate(result["promotion"])
    show(promotion)
    later = result["told_later"]
    if promotion.decision is not None and promotion.decision.action == "left open" and not served:
        by = asked(decide, reason, name, promotion)
        from tasks.promotion.page import write_page

        promotion, later = conclude(root, store, promotion, by)
        write_page(root, store, promotion, open_prepared(promotion.dataset, root))
    _tell(root, promotion, later)


def asked(decide: Decide | None, reason: str | None, name: str | None, promotion: Promotion) -> Judge:
    """The decision of a person: as given, else asked for on the terminal. CursusError where there is none."""
    from tasks.decisions.record import Judge

    if decide is None and not sys.stdin.isatty():
        raise CursusError(
            "the verdict is INCONCLUSIVE and nobody can be asked here; nothing was promoted. Decide with `cursus promote "
            f"{promotion.candidate.fingerprint[:12]} --decide promote --reason … --name …` (or reject), or in Prefect's UI "
            "after `cursus up`"
        )
    if decide is None:
        promoted = typer.confirm(f"Promote {promotion.candidate.label} to {promotion.alias}?", default=False)
        decide = "promote" if promoted else "reject"
    reason = (reason or "").strip() or typer.prompt("Reason")
    name = (name or "").strip() or typer.prompt("Your name", default=getpass.getuser())
    return Judge(decision=decide, reason=reason, name=name)


def show(promotion: Promotion) -> None:
    """A line a criterion, then the verdict."""
    table = Table("criterion", "outcome", "reason", title=promotion.model, title_justify="left")
    for one in promotion.outcomes:
        table.add_row(one.criterion, Text(one.outcome, style=COLOURS[one.outcome]), Text(one.reason))
    console.print(table)
    console.print(promotion.sentence, markup=False, soft_wrap=True, style="bold")


def _tell(root: Path, promotion: Promotion, later: str | None) -> None:
    decision = promotion.decision
    assert decision is not None
    why = "" if decision.reason == promotion.sentence else f": {decision.reason}"
    console.print(f"{decision.action} by {decision.decided_by}{why}", markup=False, soft_wrap=True)
    console.print(f"page     {root / 'reports' / promotion.id / 'gate.html'}", markup=False, soft_wrap=True)
    if later is not None:
        typer.echo(later, err=True)
    if decision.action != "promoted":
        raise typer.Exit(NOT_PROMOTED)


@told
def rollback(
    model: Annotated[str, typer.Argument(help="A registered model.")] = "cursus-classifier",
    of: Annotated[str, typer.Option(help="The alias that goes back.")] = "champion",
    reason: Annotated[str, typer.Option(help="Why; recorded on the model version.")] = "rolled back by hand",
    name: Annotated[str | None, typer.Option(help="Who; the user of this machine when not given.")] = None,
) -> None:
    """Put the alias back on the version that had it before. A second rollback undoes the first.

    Example: cursus rollback cursus-classifier --reason "slower in production"
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.promotion.judgement import roll_back

    store = Store(store_folder(root))
    decision, later = roll_back(root, store, model, of, name or getpass.getuser(), reason)
    console.print(
        f"{model}@{of} is {decision.fingerprint[:8]} again; {(decision.former or '')[:8]} is the former one",
        markup=False,
        soft_wrap=True,
    )
    if later is not None:
        typer.echo(later, err=True)
