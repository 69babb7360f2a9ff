"""What a run leaves on the disk and in Prefect: nothing for other users of the machine, and no secret."""

from __future__ import annotations

import ast
import subprocess
import sys

from tests.flows.conftest import SECRET, SECRETS, FirstRun, users_shell
from tests.steps import ROOT

HIDING = {"redacted_errors", "record_outcome", "begin", "regime"}
"""What hides the secrets of errors: the last two call the second one."""
FAILING = """
import os
from prefect import flow, task
from flows.process.outcome import record_outcome
from pipelines.safety.redaction import redacted_errors

@task
@redacted_errors()
def connect():
    raise ValueError("refused: " + os.environ["DB_PASS"])

@flow
def run():
    return record_outcome(connect)

state = run(return_state=True)
print("state:", state.message)

@flow
def open_file():
    return record_outcome(lambda: open("/nowhere/" + os.environ["DB_PASS"]))

print("state:", open_file(return_state=True).message)
"""


def test_the_state_of_a_checkout_is_its_owner_s_alone(first: FirstRun) -> None:
    assert first.modes["mlflow.db"] == "600" and first.modes["executions"] == "700"
    assert {name.partition("/")[0] for name in first.modes} >= {"prefect", "logs", "executions", "locks"}
    assert not {name: mode for name, mode in first.modes.items() if int(mode, 8) & 0o077}


def test_a_run_writes_no_secret_of_its_environment(first: FirstRun) -> None:
    written = [path for path in first.checkout.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(written) > 100
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    assert SECRET not in first.done.stdout + first.done.stderr


def test_prefect_records_an_error_without_its_secret(first: FirstRun, server: dict[str, str]) -> None:
    environment = users_shell(first.checkout) | server | SECRETS
    done = subprocess.run(
        [sys.executable, "-c", FAILING],
        cwd=first.checkout, env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    states = [line for line in done.stdout.splitlines() if line.startswith("state:")]
    assert len(states) == 2 and "ValueError: refused: ***" in states[0] and "FileNotFoundError" in states[1]
    assert SECRET not in done.stdout


def test_every_task_and_flow_hides_secrets_of_its_errors() -> None:
    found = []
    for path in sorted([*(ROOT / "tasks").rglob("*.py"), *(ROOT / "flows").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            names = [ast.unparse(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list]
            if {"task", "flow"} & set(names):
                found.append(node.name)
                calls = {ast.unparse(one.func) for one in ast.walk(node) if isinstance(one, ast.Call)}
                assert calls & HIDING, f"{path}: {node.name}: decorate it with redacted_errors()"
    assert len(found) > 10
