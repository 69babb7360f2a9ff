"""The verdict on a contest from its evidence, and the execution of the decision."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pipelines.errors import CursusError
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.judging.gate import CriterionOutcome, judge_tasks
from pipelines.judging.gate.evidence import Evidence
from pipelines.judging.gate.verdict import verdict
from pipelines.lineage.store import Artifact, Store
from tasks.datasets.prepared import Prepared
from tasks.decisions.journal import AliasState, PromotionJournal
from tasks.decisions.record import (
    GATE,
    Action,
    Contestant,
    JudgedTask,
    ManualDecision,
    Promotion,
    PromotionDecision,
    now,
)
from tasks.models.ancestry import label
from tasks.promotion.contest import Contest
from tasks.promotion.facts import leakage_evidence, lineage_evidence
from tasks.promotion.settings import PromotionSettings
from tasks.promotion.sides import Side
from tasks.tracking.champions import champion_state, former, report_decisions


def new_id() -> str:
    """`promotion-20260301-101500-3f2a`."""
    return f"promotion-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"


def judge(
    root: Path,
    store: Store,
    contest: Contest,
    prepared: Prepared,
    judged: Mapping[str, Artifact],
    settings: PromotionSettings,
    identifier: str,
) -> Promotion:
    """Judge every criterion on every task, write the record into reports/ and return it.

    `judged` are the artifacts of the judging steps, by task.
    """
    lineage = lineage_evidence(store, contest.candidate.record.fingerprint)
    evidence: dict[str, Evidence] = {}
    for name, artifact in judged.items():
        task = contest.candidate.tasks[name]
        document = json.loads((artifact.folder / EVALUATION).read_text(encoding="utf-8"))
        leakage = leakage_evidence(prepared, dict(contest.candidate.lineage), task.table("test"))
        evidence[name] = Evidence(
            metrics=task.family.metrics,
            examples=leakage.tested,
            champion=contest.champion is not None,
            sections=tuple(document["sections"].values()),
            leakage=leakage,
            lineage=lineage,
        )
    outcomes = [outcome for criterion in settings.criteria for outcome in judge_tasks(criterion, evidence)]
    not_required = [
        CriterionOutcome(
            criterion=name, outcome="not asked", reason="not named under promotion.criteria in params.yaml"
        )
        for name in settings.not_required
    ]
    tasks = [
        JudgedTask(
            task=name,
            family=contest.candidate.tasks[name].family.name,
            metrics=one.metrics,
            examples=one.examples,
            evidence=judged[name].fingerprint,
        )
        for name, one in evidence.items()
    ]
    promotion = Promotion(
        id=identifier,
        began=now(),
        model=contest.model,
        alias=contest.alias,
        dataset=prepared.name,
        family=tasks[0].family,
        metrics=tasks[0].metrics,
        examples=tasks[0].examples,
        candidate=contestant(contest.candidate),
        champion=contestant(contest.champion) if contest.champion else None,
        outcomes=[*outcomes, *not_required],
        verdict=verdict(outcomes),
        evidence=tasks[0].evidence,
        tasks=tuple(tasks) if len(tasks) > 1 else (),
    )
    promotion.write(root)
    return promotion


def contestant(side: Side) -> Contestant:
    """A model as it is recorded."""
    return Contestant(fingerprint=side.record.fingerprint, label=label(side.record), recipe=side.record.recipe)


def conclude(
    root: Path, store: Store, promotion: Promotion, by: ManualDecision | None, left: str | None = None
) -> tuple[Promotion, str | None]:
    """Record the decision, then move the alias; return the record, and why MLflow is updated later, if it is.

    Without a person's decision, GO promotes, NO-GO refuses, and INCONCLUSIVE is left open, with the reason `left` if
    given. Raises CursusError when another promotion has moved the alias since, because the candidate was compared with
    another champion, and when the candidate is no longer in the store.
    """
    if by is not None:
        action: Action = "promoted" if by.decision == "promote" else "refused"
    else:
        actions = {"GO": "promoted", "NO-GO": "refused", "INCONCLUSIVE": "left open"}
        action = actions[promotion.verdict]  # type: ignore[assignment]
    journal = PromotionJournal(store)
    fingerprint = promotion.candidate.fingerprint
    with journal.exclusive():
        here = journal.alias_state(promotion.model, promotion.alias)
        compared = promotion.champion.fingerprint if promotion.champion else None
        if action == "promoted" and compared is not None and here.champion != compared:
            raise CursusError(
                f"another promotion has made {(here.champion or 'none')[:8]} the {promotion.alias} of "
                f"{promotion.model} since this candidate was compared with {compared[:8]}; nothing is promoted, run "
                "`cursus promote` again"
            )
        if action == "promoted" and store.get(fingerprint) is None:
            raise CursusError(
                f"{fingerprint[:12]} is no longer in the store; nothing is promoted, recompute it with `cursus run`"
            )
        after = (
            AliasState(fingerprint, here.champion) if action == "promoted" and here.champion != fingerprint else here
        )
        decision = PromotionDecision(
            promotion=promotion.id,
            at=now(),
            action=action,
            model=promotion.model,
            alias=promotion.alias,
            fingerprint=fingerprint,
            verdict=promotion.verdict,
            decided_by=by.name if by else GATE,
            reason=by.reason if by else left or promotion.sentence,
            evidence=promotion.evidence,
            further_evidence=tuple(one.evidence for one in promotion.tasks[1:]),
            champion=after.champion,
            former=after.former,
        )
        journal.add(decision)
    concluded = promotion.model_copy(update={"decision": decision})
    concluded.write(root)
    return concluded, report_decisions(root, store)


def roll_back(
    root: Path, store: Store, model: str, alias: str, name: str, reason: str
) -> tuple[PromotionDecision, str | None]:
    """Move the alias back to the model that it pointed to before; a second rollback undoes the first.

    Returns the decision, and why MLflow is updated later, if it is. Raises CursusError when there is no former
    champion.
    """
    champion_state(root, store, model, alias)
    journal = PromotionJournal(store)
    with journal.exclusive():
        here = journal.alias_state(model, alias)
        if here.champion is None:
            models = sorted({each.model for each in journal.decisions() if each.champion})
            raise CursusError(
                f"{model} has no {alias}, so there is nothing to roll back. "
                f"Models that have one: {', '.join(models) or 'none'}"
            )
        if here.former is None:
            raise CursusError(
                f"{model}: {here.champion[:8]} is its first {alias}; there is no {former(alias)} to roll back to"
            )
        decision = PromotionDecision(
            at=now(),
            action="rolled back",
            model=model,
            alias=alias,
            fingerprint=here.former,
            verdict=None,
            decided_by=name,
            reason=reason,
            evidence=None,
            champion=here.former,
            former=here.champion,
        )
        journal.add(decision)
    return decision, report_decisions(root, store)
