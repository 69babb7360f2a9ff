"""Who is champion: the journal says so, MLflow follows, whatever is killed, away or moved by hand in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import CursusError, RecipeError
from pipelines.judging.gate import CriterionOutcome
from pipelines.lineage.store import Artifact
from tasks.decisions.journal import AliasState, PromotionJournal
from tasks.decisions.record import Contestant, ManualDecision, Promotion
from tasks.models.upkeep import removable
from tasks.promotion.judgement import conclude, roll_back
from tasks.promotion.settings import PromotionSettings
from tasks.tracking.champions import champion_state, sync_champions
from tasks.tracking.executions import record_pending_executions
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry
from tests.tasks.conftest import Builder

MODEL, ALIAS = "docs-text-classification", "champion"
KILLED = """
import os, signal, sys
from pathlib import Path
from pipelines.lineage.store import Store
from tasks.tracking.champions import sync_champions
from tasks.tracking.recorder import Recorder
from tasks.tracking.registry import Registry
registry, moves = Registry(Recorder(Path({root!r}))), 0
move = registry.recorder.client.set_registered_model_alias
def counted(*arguments):
    global moves
    if moves == {before}:
        os.kill(os.getpid(), signal.SIGKILL)
    moves += 1
    move(*arguments)
registry.recorder.client.set_registered_model_alias = counted
sync_champions(registry, Store(Path({store!r})))
"""


@pytest.fixture
def models(builder: Builder) -> Iterator[list[Artifact]]:
    """Three models that answer the same task."""
    yield [builder.step("classify", "finetune", seed=seed) for seed in range(3)]


def promotion(candidate: Artifact, champion: Artifact | None, verdict: Any, number: int = 1) -> Promotion:
    """A judgement, as the flow hands it over."""
    sides = [
        Contestant(fingerprint=one.fingerprint, label=f"classify@{one.provenance.seed}", recipe="regime")
        if one
        else None
        for one in (candidate, champion)
    ]
    answer = {"GO": "met", "NO-GO": "missed", "INCONCLUSIVE": "undecided"}[verdict]
    outcomes = [
        CriterionOutcome.model_validate({"criterion": "quality", "outcome": answer, "reason": f"it is {answer}"})
    ]
    assert sides[0] is not None
    return Promotion(
        id=f"promotion-{number}",
        began="2026-03-01T10:00:00+00:00",
        model=MODEL,
        alias=ALIAS,
        dataset="docs",
        family="text_classification",
        metrics=("macro_f1",),
        examples=20,
        candidate=sides[0],
        champion=sides[1],
        outcomes=outcomes,
        verdict=verdict,
        evidence="e" * 64,
    )


def on(root: Path, alias: str = ALIAS) -> str | None:
    return Registry(Recorder(root)).fingerprint_at(MODEL, alias)


def test_go_moves_the_alias_no_go_leaves_it_and_a_person_may_overrule(
    root: Path, builder: Builder, models: list[Artifact]
) -> None:
    first, second, third = models
    store = builder.store
    concluded, later = conclude(root, store, promotion(first, None, "GO"), None)
    assert concluded.decision is not None and concluded.decision.action == "promoted" and later is None
    assert on(root) == first.fingerprint and on(root, "former_champion") is None

    concluded, _ = conclude(root, store, promotion(second, first, "NO-GO"), None)
    assert concluded.decision is not None and concluded.decision.action == "refused"
    assert on(root) == first.fingerprint
    concluded, _ = conclude(root, store, promotion(second, first, "INCONCLUSIVE"), None, "nobody came")
    assert concluded.decision is not None and concluded.decision.action == "left open"
    assert concluded.decision.reason == "nobody came"
    assert on(root) == first.fingerprint

    by = ManualDecision(decision="promote", reason=" wider coverage ", name="Ada")
    conclude(root, store, promotion(second, first, "INCONCLUSIVE", 3), by)
    assert (on(root), on(root, "former_champion")) == (second.fingerprint, first.fingerprint)
    tags = Registry(Recorder(root)).recorder.client.get_model_version_by_alias(MODEL, ALIAS).tags
    gate = {key.removeprefix("cursus.gate."): value for key, value in tags.items() if key.startswith("cursus.gate.")}
    assert gate.pop("at")
    assert gate == {
        "decision": "promoted", "verdict": "INCONCLUSIVE", "decided_by": "Ada", "reason": "wider coverage",
        "evidence": "e" * 64,
    }  # fmt: skip
    written = Promotion.read(root, "promotion-3")
    assert written.decision is not None and written.decision.decided_by == "Ada"

    with pytest.raises(CursusError, match="another promotion has made .* nothing is promoted"):
        conclude(root, store, promotion(third, first, "GO"), None)
    assert on(root) == second.fingerprint
    assert not PromotionJournal(store).pending()
    # the champions stay in the store
    assert {second.fingerprint, first.fingerprint} <= PromotionJournal(store).referenced()
    assert not {one.fingerprint for one in removable(root, store, 0)} & {first.fingerprint, second.fingerprint}


def test_a_rollback_is_one_call_and_a_second_undoes_it(root: Path, builder: Builder, models: list[Artifact]) -> None:
    first, second, _ = models
    store = builder.store
    with pytest.raises(CursusError, match="has no champion, so there is nothing to roll back"):
        roll_back(root, store, MODEL, ALIAS, "Ada", "slow")
    conclude(root, store, promotion(first, None, "GO"), None)
    with pytest.raises(CursusError, match="is its first champion"):
        roll_back(root, store, MODEL, ALIAS, "Ada", "slow")
    conclude(root, store, promotion(second, first, "GO", 2), None)
    for champion, former in ((first, second), (second, first)):
        decision, later = roll_back(root, store, MODEL, ALIAS, "Ada", "slow")
        assert later is None and decision.fingerprint == champion.fingerprint
        assert (on(root), on(root, "former_champion")) == (champion.fingerprint, former.fingerprint)
    tags = Registry(Recorder(root)).recorder.client.get_model_version_by_alias(MODEL, ALIAS).tags
    assert tags["cursus.moved.decided_by"] == "Ada" and tags["cursus.gate.verdict"] == "GO"


@pytest.mark.parametrize("before", [0, 1])
def test_a_kill_between_two_alias_moves_leaves_one_champion(
    root: Path, builder: Builder, models: list[Artifact], before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = models
    store = builder.store
    conclude(root, store, promotion(first, None, "GO"), None)
    monkeypatch.setattr("tasks.promotion.judgement.report_decisions", lambda *_: None)  # the process below tells it
    conclude(root, store, promotion(second, first, "GO", 2), None)
    script = textwrap.dedent(KILLED).format(root=str(root), store=str(store.root), before=before)
    done = subprocess.run([sys.executable, "-c", script], env=os.environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr

    versions = Registry(Recorder(root)).recorder.client.search_registered_models(f"name = '{MODEL}'")[0].aliases
    assert list(versions).count(ALIAS) == 1 and on(root) == (second if before else first).fingerprint
    assert PromotionJournal(store).alias_state(MODEL, ALIAS) == AliasState(second.fingerprint, first.fingerprint)
    record_pending_executions(root, store)  # what the next start does
    assert (on(root), on(root, "former_champion")) == (second.fingerprint, first.fingerprint)
    assert not PromotionJournal(store).pending()


def test_where_mlflow_is_away_the_decision_stands_and_is_told_later(
    root: Path, builder: Builder, models: list[Artifact], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, _ = models
    conclude(root, builder.store, promotion(first, None, "GO"), None)
    here = os.environ["MLFLOW_TRACKING_URI"]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    _, later = conclude(root, builder.store, promotion(second, first, "GO", 2), None)
    assert later is not None and "MLflow does not answer" in later
    assert champion_state(root, builder.store, MODEL, ALIAS) == AliasState(second.fingerprint, first.fingerprint)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", here)
    assert on(root) == first.fingerprint, "nothing was half moved"
    record_pending_executions(root, builder.store)
    assert (on(root), on(root, "former_champion")) == (second.fingerprint, first.fingerprint)


def test_an_alias_moved_by_hand_is_taken_over_and_one_that_was_lost_comes_back(
    root: Path, builder: Builder, models: list[Artifact]
) -> None:
    first, second, _ = models
    store, registry = builder.store, Registry(Recorder(root))
    conclude(root, store, promotion(first, None, "GO"), None)
    by_hand = registry.ensure_version(MODEL, second.provenance, store)
    registry.recorder.client.set_registered_model_alias(MODEL, ALIAS, by_hand)
    assert champion_state(root, store, MODEL, ALIAS) == AliasState(second.fingerprint, first.fingerprint)
    assert PromotionJournal(store).decisions()[-1].action == "adopted"
    assert on(root) == second.fingerprint and on(root, "former_champion") == first.fingerprint

    registry.recorder.client.delete_registered_model(MODEL)
    assert sync_champions(registry, store) == 0
    assert (on(root), on(root, "former_champion")) == (second.fingerprint, first.fingerprint)


def test_half_a_line_is_passed_over_and_the_next_is_whole(root: Path, builder: Builder, models: list[Artifact]) -> None:
    journal = PromotionJournal(builder.store)
    conclude(root, builder.store, promotion(models[0], None, "GO"), None)
    with journal.path.open("ab") as file:
        file.write(b'{"said":"decision","id":"torn')
    conclude(root, builder.store, promotion(models[1], models[0], "GO", 2), None)
    assert [decision.promotion for decision in journal.decisions()] == ["promotion-1", "promotion-2"]
    lines = journal.path.read_bytes().splitlines()
    assert sum(json.loads(line)["said"] == "decision" for line in lines if line.endswith(b"}")) == 2


@pytest.mark.parametrize(
    ("block", "told"),
    [
        ("promotion: {criterion: {}}", "Did you mean 'criteria'?"),
        ("promotion: {criteria: {qualty: {}}}", "Did you mean 'quality'?"),
        ("promotion: {criteria: {quality: {margins: 1}}}", "Did you mean 'margin'?"),
        ("promotion: {criteria: {quality: {margin: -1}}}", "greater than or equal to 0"),
        ("promotion: {criteria: {quality: 3}}", "expected a mapping of its settings"),
        ("promotion: {wait_hours: 0}", "promotion.wait_hours: Input should be greater than 0"),
    ],
)
def test_settings_that_ask_for_what_there_is_not_are_refused(tmp_path: Path, block: str, told: str) -> None:
    (tmp_path / "params.yaml").write_text(f"datasets: {{}}\n{block}\n")
    with pytest.raises(RecipeError, match=r"params\.yaml:\d+: promotion") as refused:
        PromotionSettings.load(tmp_path)
    assert told in str(refused.value)


def test_what_is_not_named_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text("promotion: {criteria: {quality: {margin: 0.02}, lineage: }}\n")
    settings = PromotionSettings.load(tmp_path)
    assert [criterion.name for criterion in settings.criteria] == ["quality", "lineage"]
    assert "leakage" in settings.not_required and "quality" not in settings.not_required
    (tmp_path / "params.yaml").write_text("datasets: {}\n")
    assert {"leakage", "lineage", "quality"} <= {one.name for one in PromotionSettings.load(tmp_path).criteria}
