"""Servers require an account, on loopback too; its password is seen nowhere."""

from __future__ import annotations

import base64
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import CursusError
from tasks.environment import defaults, keep_private, private_state_folder
from tasks.servers.accounts import VARIABLE, Account, account, required_account
from tasks.servers.services import Services, down, up
from tests.seeded_checkouts import seed

from .conftest import processes_of, status

PASSWORD = "correct-horse-battery"


def write_account(root: Path, line: str, mode: int = 0o600) -> None:
    file = root / ".cursus" / "account"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(line, encoding="utf-8")
    file.chmod(mode)


def test_an_account_is_made_where_there_is_none_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    private_state_folder(tmp_path)
    made, new = required_account(tmp_path)
    file = tmp_path / ".cursus" / "account"
    assert new and file.read_text(encoding="utf-8") == f"{made.line}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert made.name == "cursus" and len(made.password.get_secret_value()) >= 32
    assert required_account(tmp_path) == (made, False)
    file.unlink()
    assert required_account(tmp_path)[0] != made


@pytest.mark.parametrize(
    ("line", "mode", "said"),
    [
        ("ada:too-short", 0o600, "12 characters or more"),
        (f":{PASSWORD}", 0o600, "name:password"),
        (f"ada:{PASSWORD}", 0o644, "chmod 600"),
    ],
)
def test_a_bad_account_is_refused_without_being_shown(tmp_path: Path, line: str, mode: int, said: str) -> None:
    write_account(tmp_path, line, mode)
    keep_private(tmp_path)  # as every command does: what others could read does not become good by that
    with pytest.raises(CursusError, match=said) as refused:
        account(tmp_path)
    assert line.partition(":")[2] not in str(refused.value)


def test_an_account_of_the_environment_is_not_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"ada:{PASSWORD}")
    found = account(tmp_path)
    assert found is not None and found.name == "ada"
    assert PASSWORD not in f"{found!r} {found}"


@pytest.fixture(scope="module")
def guarded(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Services]]:
    """Servers of a folder of its own, with the sources of the copy, that listen on every address."""
    root = project.parent / "guarded"
    root.mkdir()
    for name in ("flows", "tasks", "pipelines", "recipes", "automations", "prefect.yaml", "params.yaml"):
        (root / name).symlink_to(project / name)
    seed(root, tmp_path_factory)
    write_account(root, f"ada:{PASSWORD}\n")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in defaults(root).items():
            patch.setenv(name, value)
        for name in ("PREFECT_API_URL", VARIABLE):
            patch.delenv(name, raising=False)
        patch.setenv("PYTHONPATH", str(root))
        try:
            yield root, up(root, host="0.0.0.0", prefect_port=0, mlflow_port=0, notify=lambda _: None)
        finally:
            down(root, notify=lambda _: None)
            assert processes_of(root) == []


def answered(url: str, account: str | None = None, body: dict[str, Any] | None = None) -> int:
    """The status that a server answers to somebody with an account, or without."""
    header = {} if account is None else {"Authorization": f"Basic {base64.b64encode(account.encode()).decode()}"}
    return status(url, body, **header)[0]


@pytest.mark.timeout(400)
def test_both_servers_demand_the_account_and_our_own_clients_give_it(
    guarded: tuple[Path, Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, services = guarded
    prefect = f"{services.prefect_url}/api/admin/version"
    mlflow = f"{services.mlflow_url}/api/2.0/mlflow/experiments/create"
    assert answered(prefect) == answered(mlflow, body={}) == 401
    assert answered(prefect, "ada:wrong-password") == answered(mlflow, "ada:wrong-password", {}) == 401
    assert answered(prefect, f"ada:{PASSWORD}") == 200
    changing = f"{services.prefect_url}/api/flow_runs/filter"
    assert answered(changing, f"ada:{PASSWORD}", {}) == 403, "no token against cross-site requests"
    # registering the deployments and seeing the worker's heartbeat was `up` itself
    found = account(root)
    assert found is not None
    monkeypatch.setenv("MLFLOW_TRACKING_URI", services.mlflow_url)
    for name, value in found.mlflow.items():
        monkeypatch.setenv(name, value)
    from mlflow import MlflowClient

    assert MlflowClient(services.mlflow_url).create_experiment("told")
    for process in processes_of(root):
        assert PASSWORD not in " ".join(process.cmdline())
    state = root / ".cursus"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    written = [path for path in state.rglob("*") if path.is_file() and path.name != "account"]
    for path in written:
        if path.suffix in {".db", ".db-wal", ".db-shm", ".log", ".ini"}:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, f"{path} is for others to read"
    assert {state / "services.json", state / "mlflow-auth.ini"} <= set(written)
    for path in written:
        assert PASSWORD.encode() not in path.read_bytes(), f"{path} shows the password"
    with pytest.raises(CursusError, match=r"listen on 0\.0\.0\.0; stop them first"):
        up(root, notify=lambda _: None)


@pytest.mark.timeout(400)
def test_a_changed_password_is_the_only_one_that_works(guarded: tuple[Path, Services]) -> None:
    root, services = guarded
    Account.parse("ada:another-long-password", "test").mlflow_server(root)
    address = f"{services.mlflow_url}/api/2.0/mlflow/runs/search"
    assert answered(address, f"ada:{PASSWORD}", {}) == 401
    assert answered(address, "ada:another-long-password", {}) != 401
