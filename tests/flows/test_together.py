"""Two runs at once on one checkout: every step is computed once, and both end well."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from pipelines.lineage.store import Store
from pipelines.lineage.upkeep import flaws


def test_two_runs_at_once_compute_a_step_once(checkout: Path, environment: dict[str, str]) -> None:
    command = [
        sys.executable,
        "-m",
        "flows.cli.app",
        "run",
        "roberta",
        "--smoke",
        "--until",
        "general",
        "--threads",
        "1",
    ]
    both = [
        subprocess.Popen(
            command, cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        for _ in range(2)
    ]
    told = [process.communicate(timeout=240)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], "\n".join(told)
    store = Store(checkout / "data" / "store")
    (made,) = [record for record in store.all() if record.recipe == "roberta"]
    assert list(flaws(store)) == []
    with sqlite3.connect(checkout / ".cursus" / "mlflow.db") as database:
        runs = database.execute(
            "select c.value from tags f join tags c on c.run_uuid = f.run_uuid and c.key = 'cursus.cached' "
            "where f.key = 'cursus.fingerprint' and f.value = ?",
            (made.fingerprint,),
        ).fetchall()
    database.close()
    assert sorted(runs) in ([("false",), ("true",)], [("false",)]), "the other took what was published"
