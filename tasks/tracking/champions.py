"""The aliases of MLflow's registry as a projection of the promotion journal. Every function here is idempotent.

sync_champions(registry, store)              # records pending decisions in MLflow, and sets aliases that it lost
champion_state(root, store, model, alias)    # who is champion; MLflow is synchronised first, if it answers
"""

from __future__ import annotations

import logging
from pathlib import Path

from pipelines.errors import StoreError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.safety.redaction import redacted
from tasks.decisions.journal import AliasState, DecisionRecorded, PromotionJournal
from tasks.decisions.record import PromotionDecision, now
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry

log = logging.getLogger("cursus.promotion")


def former(alias: str) -> str:
    """The alias of the version that `alias` pointed to before."""
    return f"former_{alias}"


def sync_champions(registry: Registry, store: Store) -> int:
    """Record pending decisions in MLflow and set aliases that it lost; return the number of decisions recorded.

    Raises what MLflow raises.
    """
    journal = PromotionJournal(store)
    if not journal.path.exists():
        return 0
    with journal.exclusive():
        pending = journal.pending()
        for decision in pending:
            _tag(registry, store, decision)
        changed = {(decision.model, decision.alias) for decision in pending}
        for model, alias in sorted({(decision.model, decision.alias) for decision in journal.decisions()}):
            here = journal.alias_state(model, alias)
            if (model, alias) in changed or (here.champion and registry.fingerprint_at(model, alias) is None):
                _point(registry, store, model, alias, here.champion)
                _point(registry, store, model, former(alias), here.former)
        for decision in pending:
            journal.add(DecisionRecorded(id=decision.id))
    return len(pending)


def champion_state(root: Path, store: Store, model: str, alias: str) -> AliasState:
    """The champion and its predecessor. An alias that was moved by hand in MLflow is adopted by the journal, with a
    warning.

    When MLflow does not answer, the journal's state.
    """
    registry, journal = Registry(Recorder(root)), PromotionJournal(store)
    try:
        sync_champions(registry, store)
        there = registry.fingerprint_at(model, alias)
    except Exception as error:
        if not registry.recorder.is_unavailable(error):
            raise
        log.warning("MLflow does not answer (%s); the %s is taken from the promotion journal.", error, alias)
        return journal.alias_state(model, alias)
    here = journal.alias_state(model, alias)
    if there is None or there == here.champion:
        return here
    moved = PromotionDecision(
        at=now(),
        action="adopted",
        model=model,
        alias=alias,
        fingerprint=there,
        verdict=None,
        decided_by="a user of MLflow",
        reason=f"the alias {alias} pointed to this version without a promotion",
        evidence=None,
        champion=there,
        former=here.champion,
    )
    log.warning("%s: %s was moved to %s by hand in MLflow; the promotion journal adopts it.", model, alias, there[:8])
    with journal.exclusive():
        journal.add(moved)
    sync_champions(registry, store)
    return AliasState(there, here.champion)


def report_decisions(root: Path, store: Store) -> str | None:
    """Record pending decisions in MLflow; None, or the reason why that is postponed to the next start."""
    registry = Registry(Recorder(root))
    try:
        sync_champions(registry, store)
    except Exception as error:
        if not registry.recorder.is_unavailable(error):
            raise
        return (
            f"MLflow does not answer ({type(error).__name__}); the decision is in the promotion journal, and is "
            "sent when MLflow answers"
        )
    return None


def _tag(registry: Registry, store: Store, decision: PromotionDecision) -> None:
    version = _version(registry, store, decision.model, decision.fingerprint)
    if version is None:
        return
    tags = {
        "decision": decision.action,
        "verdict": decision.verdict,
        "decided_by": decision.decided_by,
        "reason": decision.reason,
        "at": decision.at,
        "evidence": decision.evidence and ", ".join((decision.evidence, *decision.further_evidence)),
    }
    # a move without a verdict does not overwrite the tags of the last verdict
    about = "gate" if decision.verdict is not None else "moved"
    for key, value in tags.items():
        if value is not None:
            shown = redacted(value)
            registry.recorder.client.set_model_version_tag(decision.model, version, f"cursus.{about}.{key}", shown)


def _point(registry: Registry, store: Store, model: str, alias: str, fingerprint: str | None) -> None:
    client = registry.recorder.client
    version = _version(registry, store, model, fingerprint) if fingerprint else None
    if version is not None:
        client.set_registered_model_alias(model, alias, version)
    elif registry.fingerprint_at(model, alias) is not None:
        client.delete_registered_model_alias(model, alias)


def _version(registry: Registry, store: Store, model: str, fingerprint: str) -> str | None:
    """The version of an artifact, registered anew when MLflow lost it; None when the store does not have it either."""
    if (known := registry.version_of(model, fingerprint)) is not None:
        return known
    try:
        return registry.ensure_version(model, Provenance.read(store.folder(fingerprint)), store)
    except StoreError as lost:
        log.warning("%s: %s is in neither MLflow nor the store (%s)", model, fingerprint[:8], lost)
        return None
