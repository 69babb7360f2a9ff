from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tasks.environment import defaults

HEAVY = {"prefect", "mlflow", "dvc", "great_expectations", "torch", "pandas", "transformers"}


def prepared(root: Path, **exported: str) -> dict[str, object]:
    """The environment and the imported modules of a fresh process after `prepare_environment(root)`."""
    script = (
        "import json, os, sys; from pathlib import Path; from tasks.servers.environment import prepare_environment; "
        f"prepare_environment(Path({str(root)!r})); "
        "modules = sorted({m.split('.')[0] for m in sys.modules}); "
        "print(json.dumps({'environment': dict(os.environ), 'modules': modules}))"
    )
    clean = {name: value for name, value in os.environ.items() if name not in {*defaults(root), "PREFECT_API_URL"}}
    output = subprocess.run(
        [sys.executable, "-c", script], env={**clean, **exported}, check=True, capture_output=True, text=True
    )
    result: dict[str, object] = json.loads(output.stdout)
    return result


def test_every_tool_is_told_to_stay_quiet_and_at_home(tmp_path: Path) -> None:
    environment = prepared(tmp_path)["environment"]
    assert isinstance(environment, dict)
    assert environment["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert environment["DO_NOT_TRACK"] == "true", "MLflow ignores DO_NOT_TRACK=1"
    assert environment["MLFLOW_TRACKING_URI"] == f"sqlite:///{tmp_path}/.cursus/mlflow.db"
    assert environment["PREFECT_HOME"] == f"{tmp_path}/.cursus/prefect"
    assert "PREFECT_API_URL" not in environment


def test_what_the_user_exported_wins(tmp_path: Path) -> None:
    environment = prepared(tmp_path, MLFLOW_TRACKING_URI="https://mlflow.example.org")["environment"]
    assert isinstance(environment, dict)
    assert environment["MLFLOW_TRACKING_URI"] == "https://mlflow.example.org"


def test_a_record_of_servers_that_are_gone_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / ".cursus").mkdir()
    record = {
        "prefect_url": "http://127.0.0.1:9",
        "mlflow_url": "http://127.0.0.1:9",
        "prefect": {"pid": os.getpid(), "created": 1.0},
    }
    (tmp_path / ".cursus" / "services.json").write_text(json.dumps(record))
    environment = prepared(tmp_path)["environment"]
    assert isinstance(environment, dict)
    assert "PREFECT_API_URL" not in environment


def test_preparing_imports_nothing_heavy(tmp_path: Path) -> None:
    modules = prepared(tmp_path)["modules"]
    assert isinstance(modules, list)
    assert HEAVY.isdisjoint(modules)
