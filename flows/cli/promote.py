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

from flows.cli.exit_status import handle_errors
from flows.cli.store_in_use import hold
from pipelines.errors import CursusError
from pipelines.messages.translation import localized_page, message
from tasks.environment import project_root
from tasks.servers.environment import prepare_environment

if TYPE_CHECKING:
    from tasks.decisions.record import ManualDecision, Promotion

COLOURS = {"met": "green", "missed": "red", "undecided": "yellow", "not asked": "dim"}
NOT_PROMOTED = 1
"""Exit status when the model was judged and the alias did not move."""

console = Console(highlight=False)

Decide = Literal["promote", "reject"]


@handle_errors
def promote(
    model: Annotated[
        str | None,
        typer.Argument(
            help="A registered model, a stage, or a fingerprint's first digits; the latest run's final model when not "
            "given."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--data", help="The dataset whose latest run is meant where no model is named.")
    ] = None,
    to: Annotated[str, typer.Option(help="The alias that moves to it.")] = "champion",
    alone: Annotated[
        bool, typer.Option("--alone", help="Judge it by itself, without comparing it with the current champion.")
    ] = False,
    decide: Annotated[
        Decide | None, typer.Option(help="The decision if the verdict is INCONCLUSIVE; with --reason and --name.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why; recorded on the model version.")] = None,
    name: Annotated[str | None, typer.Option(help="Who decides; recorded on the model version.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Processor cores for the judging step.")] = None,
) -> None:
    """Judge a model against the champion on the same test examples: GO makes it champion, NO-GO does not.

    INCONCLUSIVE waits for a person: in Prefect's UI while `cursus up` runs, else here. Exit status 0 when the model has
    the alias, 1 when it does not, 2 for a mistake. The criteria: params.yaml, promotion (docs/promotion.md).

    Example: cursus promote --data reviews
    """
    root = project_root()
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")  # this command reports errors itself
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
    hold(store)
    PromotionSettings.load(root)  # reports invalid settings before anything starts
    contest = open_contest(root, store, model, to, not alone, dataset)
    candidate = contest.candidate
    if contest.alias_state.champion == candidate.record.fingerprint:
        line = message(
            "{candidate} is already the {alias} of {model}", candidate=candidate.name, alias=to, model=contest.model
        )
        console.print(line, markup=False)
        return
    held = contest.champion.name if contest.champion else message("no champion")
    line = message(
        "{model}: {candidate} against {champion}; starting Prefect, MLflow and torch …",
        model=contest.model,
        candidate=candidate.name,
        champion=held,
    )
    typer.echo(line, err=True)
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
    later = result["mlflow_pending"]
    if promotion.decision is not None and promotion.decision.action == "left open" and not served:
        by = read_decision(decide, reason, name, promotion)
        from tasks.promotion.page import write_page

        promotion, later = conclude(root, store, promotion, by)
        write_page(root, store, promotion, open_prepared(promotion.dataset, root))
    _show_decision(root, promotion, later)


def read_decision(decide: Decide | None, reason: str | None, name: str | None, promotion: Promotion) -> ManualDecision:
    """A person's decision: from the options, or read from the terminal. Raises CursusError when there is neither."""
    from tasks.decisions.record import ManualDecision

    if decide is None and not sys.stdin.isatty():
        raise CursusError(
            "the verdict is INCONCLUSIVE and there is no terminal to decide on; nothing was promoted. Decide with "
            f"`cursus promote {promotion.candidate.fingerprint[:12]} --decide promote --reason … --name …` (or "
            "reject), or in Prefect's UI after `cursus up`"
        )
    if decide is None:
        question = message("Promote {model} to {alias}?", model=promotion.candidate.label, alias=promotion.alias)
        promoted = typer.confirm(question, default=False)
        decide = "promote" if promoted else "reject"
    reason = (reason or "").strip() or typer.prompt(message("Reason"))
    name = (name or "").strip() or typer.prompt(message("Your name"), default=getpass.getuser())
    return ManualDecision(decision=decide, reason=reason, name=name)


def show(promotion: Promotion) -> None:
    """Print one row per criterion, then the verdict."""
    from pipelines.reports.elements.wording import plain

    heads = (message("criterion"), message("outcome"), message("reason"))
    table = Table(*heads, title=promotion.model, title_justify="left")
    for one in promotion.outcomes:
        table.add_row(one.title, Text(plain(one.outcome), style=COLOURS[one.outcome]), Text(one.reason))
    console.print(table)
    console.print(promotion.sentence, markup=False, soft_wrap=True, style="bold")


def _show_decision(root: Path, promotion: Promotion, later: str | None) -> None:
    from pipelines.reports.elements.wording import plain

    decision = promotion.decision
    assert decision is not None
    line = message(
        "{action} by {person}" if decision.reason == promotion.sentence else "{action} by {person}: {reason}",
        action=plain(decision.action),
        person=decision.decided_by,
        reason=decision.reason,
    )
    console.print(line, markup=False, soft_wrap=True)
    page = localized_page(root / "reports" / promotion.id / "gate.html")
    console.print(message("page     {path}", path=page), markup=False, soft_wrap=True)
    if later is not None:
        typer.echo(later, err=True)
    if decision.action != "promoted":
        raise typer.Exit(NOT_PROMOTED)


@handle_errors
def rollback(
    model: Annotated[
        str | None, typer.Argument(help="A registered model; the one that was promoted last when not given.")
    ] = None,
    of: Annotated[str, typer.Option(help="The alias to move back.")] = "champion",
    reason: Annotated[str, typer.Option(help="Why; recorded on the model version.")] = "rolled back by hand",
    name: Annotated[str | None, typer.Option(help="Who decides; the user of this machine when not given.")] = None,
) -> None:
    """Move the alias back to the version that had it before. A second rollback undoes the first.

    Example: cursus rollback reviews-text-classification --reason "slower in production"
    """
    root = project_root()
    prepare_environment(root)
    from pipelines.lineage.store import Store
    from tasks.datasets.planning import store_folder
    from tasks.decisions.journal import PromotionJournal
    from tasks.promotion.judgement import roll_back

    store = Store(store_folder(root))
    if model is None:
        promoted = [one.model for one in PromotionJournal(store).decisions() if one.alias == of]
        if not promoted:
            raise CursusError(f"no model has been promoted to {of} yet, so there is nothing to roll back")
        model = promoted[-1]
    decision, later = roll_back(root, store, model, of, name or getpass.getuser(), reason)
    console.print(
        message(
            "{model} is {fingerprint} again; the former version is {former}",
            model=f"{model}@{of}",
            fingerprint=decision.fingerprint[:8],
            former=(decision.former or "")[:8],
        ),
        markup=False,
        soft_wrap=True,
    )
    if later is not None:
        typer.echo(later, err=True)
