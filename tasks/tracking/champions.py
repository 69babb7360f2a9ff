"""The aliases of the registry as a projection of the promotion journal. Telling a thing twice changes nothing.

settle_champions(registry, store)                 # tells MLflow of the decisions that it was not told of, and of lost aliases
standing(root, store, model, alias)     # who is champion; MLflow is caught up first, where it answers
"""

from __future__ import annotations

import logging
from pathlib import Path

from pipelines.errors import StoreError
from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from tasks.decisions.journal import PromotionJournal, Standing, Told
from tasks.decisions.record import Decision, now
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry

log = logging.getLogger("cursus.promotion")


def former(alias: str) -> str:
    """The alias of the version that `alias` was on before."""
    return f"former_{alias}"


def settle_champions(registry: Registry, store: Store) -> int:
    """Tell MLflow of every decision that it was not told of, and of aliases that it lost; how many decisions those were.

    Raises what MLflow raises.
    """
    journal = PromotionJournal(store)
    if not journal.path.exists():
        return 0
    with journal.alone():
        untold = journal.untold()
        for decision in untold:
            _tag(registry, store, decision)
        changed = {(decision.model, decision.alias) for decision in untold}
        for model, alias in sorted({(decision.model, decision.alias) for decision in journal.decisions()}):
            here = journal.standing(model, alias)
            if (model, alias) in changed or (here.champion and registry.fingerprint_at(model, alias) is None):
                _point(registry, store, model, alias, here.champion)
                _point(registry, store, model, former(alias), here.former)
        for decision in untold:
            journal.add(Told(id=decision.id))
    return len(untold)


def standing(root: Path, store: Store, model: str, alias: str) -> Standing:
    """Who is champion. An alias that somebody moved in MLflow by hand is taken over into the journal, and said so.

    Where MLflow does not answer, what the journal says.
    """
    registry, journal = Registry(Recorder(root)), PromotionJournal(store)
    try:
        settle_champions(registry, store)
        there = registry.fingerprint_at(model, alias)
    except Exception as error:
        if not registry.recorder.is_away(error):
            raise
        log.warning("MLflow does not answer (%s); the promotion journal says who is %s.", error, alias)
        return journal.standing(model, alias)
    here = journal.standing(model, alias)
    if there is None or there == here.champion:
        return here
    moved = Decision(
        at=now(),
        action="adopted",
        model=model,
        alias=alias,
        fingerprint=there,
        verdict=None,
        decided_by="somebody in MLflow",
        reason=f"the alias {alias} was on this version, and no promotion had put it there",
        evidence=None,
        champion=there,
        former=here.champion,
    )
    log.warning("%s: %s was moved in MLflow to %s by hand; the journal takes that over.", model, alias, there[:8])
    with journal.alone():
        journal.add(moved)
    settle_champions(registry, store)
    return Standing(there, here.champion)


def tell(root: Path, store: Store) -> str | None:
    """Tell MLflow what it was not told of; None, or why that waits for the next start."""
    registry = Registry(Recorder(root))
    try:
        settle_champions(registry, store)
    except Exception as error:
        if not registry.recorder.is_away(error):
            raise
        return f"MLflow does not answer ({type(error).__name__}); the decision is recorded, and told when it is back"
    return None


def _tag(registry: Registry, store: Store, decision: Decision) -> None:
    version = _version(registry, store, decision.model, decision.fingerprint)
    if version is None:
        return
    tags = {
        "decision": decision.action,
        "verdict": decision.verdict,
        "decided_by": decision.decided_by,
        "reason": decision.reason,
        "at": decision.at,
        "evidence": decision.evidence,
    }
    # what was not judged does not take the place of the judgement
    about = "gate" if decision.verdict is not None else "moved"
    for key, value in tags.items():
        if value is not None:
            registry.recorder.client.set_model_version_tag(decision.model, version, f"cursus.{about}.{key}", value)


def _point(registry: Registry, store: Store, model: str, alias: str, fingerprint: str | None) -> None:
    client = registry.recorder.client
    version = _version(registry, store, model, fingerprint) if fingerprint else None
    if version is not None:
        client.set_registered_model_alias(model, alias, version)
    elif registry.fingerprint_at(model, alias) is not None:
        client.delete_registered_model_alias(model, alias)


def _version(registry: Registry, store: Store, model: str, fingerprint: str) -> str | None:
    """The version that an artifact is, made where MLflow lost it; None where the store has not got it either."""
    if (known := registry.version_of(model, fingerprint)) is not None:
        return known
    try:
        return registry.version(model, Provenance.read(store.folder(fingerprint)), store)
    except StoreError as lost:
        log.warning("%s: %s is in neither MLflow nor the store (%s)", model, fingerprint[:8], lost)
        return None
