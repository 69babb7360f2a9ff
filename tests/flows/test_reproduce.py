"""`cursus reproduce` as a user types it: a registered model is made again in a store of its own, and compared."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from pipelines.lineage.provenance import RECORD, Provenance
from pipelines.lineage.store import Store
from tests.flows.conftest import Cursus, FirstRun, command_line, users_shell


@pytest.fixture(scope="module")
def checkout(first: FirstRun) -> Path:
    """That of the first run."""
    return first.checkout


@pytest.fixture(scope="module")
def cursus(checkout: Path, server: dict[str, str]) -> Cursus:
    return command_line(checkout, users_shell(checkout) | server)


@pytest.fixture(scope="module")
def store(cursus: Cursus, checkout: Path) -> Store:
    """With all of a run, and MLflow told of it, whatever the tests before have taken away."""
    done = cursus("run", "--threads", "1", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return Store(checkout / "data" / "store")


def runs(checkout: Path) -> int:
    with sqlite3.connect(checkout / ".cursus" / "mlflow.db") as database:
        count: int = database.execute("select count(*) from runs").fetchone()[0]
    database.close()
    return count


def test_a_registered_model_is_made_again_byte_for_byte(store: Store, cursus: Cursus, checkout: Path) -> None:
    before, recorded = runs(checkout), {record.fingerprint for record in store.all()}
    done = cursus("reproduce", "small-encoder", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["identical"] and not told["warnings"] and told["model"].startswith("models:/small-encoder/")
    assert [stage["stage"] for stage in told["stages"]] == ["vectors", "general", "domain", "task"]
    assert all(stage["seconds"] > 0 for stage in told["stages"]), "each was computed, none was taken from the store"
    assert not Path(told["folder"]).exists() and runs(checkout) == before
    assert {record.fingerprint for record in store.all()} == recorded


def test_what_differs_is_told_with_the_reason_and_kept(store: Store, cursus: Cursus, checkout: Path) -> None:
    first = next(record.fingerprint for record in store.all() if record.stage == "general")
    path = store.folder(first) / RECORD
    honest = path.read_bytes()
    path.write_text(Provenance.read(path.parent).model_copy(update={"seed": 5}).sealed().to_json())
    try:
        done = cursus("reproduce", first[:10], "--into", "elsewhere")
        again = cursus("reproduce", first[:10], "--into", "elsewhere")
    finally:
        path.write_bytes(honest)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "general@5 is the first stage that differs" in done.stdout
    reason = "why: its record was changed after it was published: its seed differs from that in its identity"
    assert reason in done.stdout
    kept = json.loads((checkout / "elsewhere" / "reproduction.json").read_bytes())
    assert not kept["identical"] and [stage["outcome"] for stage in kept["stages"]] == ["identical", "differs"]
    assert again.returncode == 2 and "elsewhere: is not empty; name an empty folder" in again.stderr
