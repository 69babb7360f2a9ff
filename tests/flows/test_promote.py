"""`cursus promote` and `cursus rollback` as a user types them, between two models of a run."""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path

import pytest

from flows.cli.promote import read_decision
from pipelines.errors import CursusError
from pipelines.lineage.store import Store
from tasks.decisions.journal import PromotionJournal
from tasks.decisions.record import Promotion, PromotionDecision, now
from tests.flows.conftest import Cursus, command_line, users_shell

MODEL = "small-text-classification"
SMALLER = "{quality: {margin: 1.0}, latency: {times_champion: 1000}, model_size: {times_champion: 0.5}, lineage: {}}"
"""No model of the same stage weighs half of another; no score is a whole point below another's."""
UNPROVEN = "{quality: {margin: 1.0}, latency: {times_champion: 1000}, reproducible: {commit: any, reproduced: true}}"
"""Nothing was made again, so the gate cannot tell."""


@pytest.fixture(scope="module")
def checkout(recorded_checkout: Path) -> Path:
    """What it has to compute first is there; tests that count what is in the first run's have another."""
    return recorded_checkout


@pytest.fixture(scope="module")
def cursus(checkout: Path, server: dict[str, str]) -> Cursus:
    return command_line(checkout, users_shell(checkout) | server)


@pytest.fixture(scope="module")
def pair(cursus: Cursus, checkout: Path) -> tuple[str, str]:
    """Fingerprints of a champion and of another model, trained with another seed."""
    done = cursus("run", "--threads", "1", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    store = Store(checkout / "data" / "store")
    made = {record.seed: record.fingerprint for record in store.all() if record.stage == "classify"}
    champion, other, *_ = (made[seed] for seed in sorted(made))
    decision = PromotionDecision(
        at=now(), action="promoted", model=MODEL, alias="champion", fingerprint=champion, verdict="GO",
        decided_by="a test", reason="the first", evidence=None, champion=champion, former=None,
    )  # fmt: skip
    PromotionJournal(store).add(decision)
    return champion, other


def ask_for(checkout: Path, criteria: str) -> None:
    params = checkout / "params.yaml"
    before = params.read_text(encoding="utf-8").partition("\npromotion:")[0].rstrip("\n")
    params.write_text(f"{before}\npromotion:\n  criteria: {criteria}\n", encoding="utf-8")


def alias(checkout: Path, name: str) -> str:
    """The fingerprint of the version that the alias is on, as MLflow's database has it."""
    question = """select t.value from registered_model_aliases a join model_version_tags t
        on t.name = a.name and t.version = a.version and t.key = 'cursus.fingerprint'
        where a.alias = ? and a.name = ?"""
    with sqlite3.connect(checkout / ".cursus" / "mlflow.db") as database:
        (found,) = database.execute(question, (name, MODEL)).fetchall()
    database.close()
    return str(found[0])


@pytest.mark.timeout(900)
def test_a_gate_that_closes_one_that_a_person_decides_and_the_way_back(
    pair: tuple[str, str], cursus: Cursus, checkout: Path
) -> None:
    champion, other = pair
    store = Store(checkout / "data" / "store")
    ask_for(checkout, SMALLER)
    closed = cursus("promote", other[:12], timeout=400)
    assert closed.returncode == 1, closed.stdout + closed.stderr
    assert "NO-GO: model_size missed" in closed.stdout and "refused by the gate" in closed.stdout
    assert alias(checkout, "champion") == champion

    ask_for(checkout, UNPROVEN)
    decided = cursus(
        "promote", other[:12], "--decide", "promote", "--reason", "new labels", "--name", "Ada", timeout=400
    )
    assert decided.returncode == 0, decided.stdout + decided.stderr
    assert "INCONCLUSIVE: reproducible undecided" in decided.stdout and "promoted by Ada: new labels" in decided.stdout
    assert alias(checkout, "champion") == other and alias(checkout, "former_champion") == champion
    judgings = [record for record in store.all() if record.recipe == "promotion"]
    assert len(judgings) == 1, "both promotions were judged by the same measurement"

    (last,) = [
        path for path in (checkout / "reports").glob("promotion-*/promotion.json") if b"new labels" in path.read_bytes()
    ]
    record = Promotion.model_validate_json(last.read_bytes())
    assert record.decision is not None and record.decision.decided_by == "Ada"
    page = (last.parent / "gate.html").read_text(encoding="utf-8")
    assert "INCONCLUSIVE" in page and "new labels" in page and record.evidence[:12] in page
    assert (
        (last.parent / "tables" / "gate-criteria.csv").read_text().startswith("criterion,outcome,reason\nquality,met")
    )

    again = cursus("promote", other[:12])
    assert again.returncode == 0 and "is already the champion of small-text-classification" in again.stdout
    back = cursus("rollback", MODEL, "--reason", "too slow", "--name", "Ada")
    assert back.returncode == 0, back.stdout + back.stderr
    assert alias(checkout, "champion") == champion and alias(checkout, "former_champion") == other


def test_mistakes_are_told_before_anything_starts(pair: tuple[str, str], cursus: Cursus, checkout: Path) -> None:
    nameless = cursus("promote", pair[1][:12], "--decide", "promote")
    assert nameless.returncode == 2 and "--decide promote needs --reason and --name" in nameless.stderr
    ask_for(checkout, "{qualty: {}}")
    misspelt = cursus("promote", pair[1][:12])
    ask_for(checkout, UNPROVEN)
    assert misspelt.returncode == 2 and "Did you mean 'quality'?" in misspelt.stderr
    assert "prefect" not in misspelt.stderr.rpartition("imported:")[2]


def test_where_nobody_can_be_asked_it_says_what_to_do(
    pair: tuple[str, str], checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {
        "id": "promotion-x", "began": now(), "model": MODEL, "alias": "champion", "dataset": "small",
        "family": "text_classification", "metrics": ["macro_f1"], "examples": 48, "champion": None,
        "candidate": {"fingerprint": pair[1], "label": "classify@1", "recipe": "regime"}, "outcomes": [],
        "verdict": "INCONCLUSIVE", "evidence": "e" * 64,
    }  # fmt: skip
    promotion = Promotion.model_validate(told)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(CursusError, match=f"nothing was promoted. Decide with `cursus promote {pair[1][:12]} --decide"):
        read_decision(None, None, None, promotion)
    assert read_decision("reject", " why ", "Ada", promotion).reason == "why"
