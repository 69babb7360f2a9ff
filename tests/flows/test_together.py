"""Commands at once on one checkout, stopped in every way: each waits for what it needs and ends well, none is left."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from flows.cli.exit_status import STOPPED
from flows.process.execute import SERVER_GONE
from flows.process.stopping import STOPPING
from pipelines.lineage.store import Store
from pipelines.lineage.upkeep import flaws
from tasks.datasets.dvc_process import is_current
from tasks.datasets.lock import REPRODUCED
from tasks.datasets.wait_for_runs import WAITING
from tasks.launchers import ORDER
from tasks.servers.accounts import account
from tasks.servers.services import down, running
from tests.flows.conftest import users_shell, write_checkout
from tests.pipelines.training.small_recipe import masked_lm_stage
from tests.steps import ROOT

PATIENCE = 300
"""Seconds that any of it may take on a busy machine."""
CLASSIFY = """
  classify:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    optimizer: {lr: 3.0e-3, precision: 32-true}
    budget: {epochs: 2, batch_texts: 4, length: 48}
  report: {kind: evaluate, start: [classify], corpus: task, suite: [{name: classification, ladder: [classify]}]}
"""
HEAD = "name: {name}\npaper: arXiv:1810.04805\nstages:\n"
STEPS = 20
HOURS = 300_000_000
"""Tokens that train for hours."""
PREFECT_WORKER = "runner_storage"
"""The folder that Prefect's worker makes."""
CASES = ("terminated", "interrupted", "interrupted_twice", "command_killed", "flow_killed")


class Started:
    """A running command, and what it has written."""

    def __init__(self, checkout: Path, environment: dict[str, str], *command: str) -> None:
        self.output = checkout.parent / f"{'-'.join(command)}-{time.monotonic_ns()}.txt"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command], cwd=checkout, env=environment, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                # as in a terminal, also where the tests run in the background of a shell, which ignores it
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )  # fmt: skip

    @property
    def written(self) -> str:
        return self.output.read_text()

    @property
    def sentences(self) -> str:
        """What it has written, without the breaks of lines."""
        return " ".join(self.written.split())

    def ended(self) -> int:
        return self.process.wait(PATIENCE)


Start = Callable[..., Started]


def general(tokens: int) -> str:
    """A stage that trains a small network on so many tokens, whatever the text is."""
    return masked_lm_stage(tokens=tokens, batch_tokens=256, dropout="") + "    limits: {unknown: 1.0}\n"


def began(store: Path, recipe: str) -> bool:
    """Whether the first stage of a recipe trains."""
    for metrics in (store / ".work").glob("*/metrics.jsonl"):
        order = metrics.parent / ORDER
        if metrics.stat().st_size and order.exists() and f'"recipe":"{recipe}"' in order.read_text():
            return True
    return False


def flow_of(started: Started) -> list[psutil.Process]:
    """The process of a run's flow, if it has been started."""
    children = psutil.Process(started.process.pid).children()
    return [child for child in children if "flows.process.execute" in child.cmdline()]


def strike(case: str, started: Started) -> None:
    match case:
        case "terminated":
            started.process.terminate()
        case "command_killed":
            started.process.kill()
        case "flow_killed":
            flow_of(started)[0].kill()
        case _:
            os.killpg(started.process.pid, signal.SIGINT)
            if case == "interrupted_twice":
                until(lambda: STOPPING in started.sentences, started)
                os.killpg(started.process.pid, signal.SIGINT)


def unfinished(api: str, auth: str, flow_runs: set[str]) -> list[str]:
    """What Prefect does not know to have ended, of the flow runs."""
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.filters import FlowRunFilter

    chosen = FlowRunFilter.model_validate({"id": {"any_": sorted(flow_runs)}})
    with SyncPrefectClient(api, auth_string=auth) as client:
        known = client.read_flow_runs(flow_run_filter=chosen)
        assert {str(one.id) for one in known} == flow_runs
        both = [*known, *client.read_task_runs(flow_run_filter=chosen)]
    return [f"{one.name}: {one.state_name}" for one in both if one.state is None or not one.state.is_final()]


def until(what: Callable[[], Any], started: Started) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert started.process.poll() is None, started.written
        assert time.monotonic() < deadline, started.written
        time.sleep(0.05)


def processes_of(checkout: Path) -> list[psutil.Process]:
    """What runs in the checkout."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd() == str(checkout) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout in which nothing was run."""
    root = write_checkout(tmp_path_factory.mktemp("together") / "checkout")
    shutil.copy(ROOT / "prefect.yaml", root)
    shutil.copytree(ROOT / "automations", root / "automations")
    (root / "recipes" / "brief.yaml").write_text(HEAD.format(name="brief") + general(256 * STEPS) + CLASSIFY)
    params = root / "params.yaml"
    params.write_text("promotion: {criteria: {lineage: {}}}\n" + params.read_text())
    for number, case in enumerate(CASES):
        recipe = HEAD.format(name=case) + general(HOURS + 256 * number)
        (root / "recipes" / f"{case}.yaml").write_text(recipe)
    yield root
    down(root, notify=lambda _: None)
    for process in processes_of(root):
        process.kill()


@pytest.fixture(scope="module")
def temporary(fresh: Path) -> Path:
    """The folder for temporary files of every command."""
    folder = fresh.parent / "temporary"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def start(fresh: Path, temporary: Path) -> Start:
    environment = {**users_shell(fresh), "TMPDIR": str(temporary)}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    environment.pop("PYTHONPATH", None)

    def command(*words: str, **more: str) -> Started:
        return Started(fresh, environment | more, *(words if words[0] == "dvc" else ("flows.cli.app", *words)))

    return command


def run(start: Start, recipe: str, *options: str, **more: str) -> Started:
    return start("run", recipe, "--threads", "1", *options, **more)


def check(*all_started: Started) -> None:
    """All have ended well, and none asks for anything to be done by hand."""
    for started in all_started:
        assert started.ended() == 0, started.written
    for started in all_started:
        assert not re.search("Traceback|rwlock|manually|locked", started.written), started.written


def test_three_runs_dvc_and_the_rest_begin_together_where_nothing_was_run(fresh: Path, start: Start) -> None:
    dvc = start("dvc", "repro")
    until(lambda: (table := fresh / ".dvc" / "tmp" / "rwlock").exists() and "collect" in table.read_text(), dvc)
    runs = [run(start, "brief", *until) for until in ((), ("--until", "classify"), ("--until", "general"))]
    others = [start("data"), start("up"), start("store", "gc", "--delete")]
    check(dvc, *runs, *others)
    assert any(REPRODUCED in started.sentences for started in runs), "a run waited for DVC"
    store = Store(fresh / "data" / "store")
    assert sorted(record.stage for record in store.all()) == ["classify", "general", "report"]
    assert list(flaws(store)) == [] and is_current("small", fresh)
    with sqlite3.connect(fresh / ".cursus" / "mlflow.db") as database:
        made = database.execute(
            "select f.value from tags f join tags c on c.run_uuid = f.run_uuid and c.key = 'cursus.cached' "
            "where f.key = 'cursus.fingerprint' and c.value = 'false'"
        ).fetchall()
    database.close()
    assert len(made) == len(set(made)) == 3, "each step was computed once"


def test_however_a_run_is_stopped_nothing_of_it_is_left(fresh: Path, start: Start, temporary: Path) -> None:
    services = running(fresh)
    assert services is not None
    served = set(processes_of(fresh))
    promoted = start("promote", "small-text-classification", "--alone")
    stopped = {case: run(start, case) for case in CASES}
    for case, started in stopped.items():
        if case in ("terminated", "command_killed"):  # before anything trains, too
            until(partial(flow_of, started), started)
        else:
            until(partial(began, fresh / "data" / "store", case), started)
        strike(case, started)
    codes = {case: started.ended() for case, started in stopped.items()}
    said = {case: started.sentences for case, started in stopped.items()}
    assert codes == dict(zip(CASES, (143, 130, 130, -9, 2), strict=True)), said
    for case in ("terminated", "interrupted", "interrupted_twice"):
        assert said[case].count(STOPPING) == 1 and said[case].endswith(STOPPED), said[case]
    assert said["flow_killed"].endswith("the same command continues from the last checkpoint")
    assert not any("Traceback" in one for one in said.values()), said
    assert promoted.ended() == 0, promoted.written
    deadline = time.monotonic() + 60
    while (left := set(processes_of(fresh)) - served) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left
    assert {path.name for path in temporary.iterdir()} <= {PREFECT_WORKER}, "nothing is left of a run"


def test_a_run_outlives_the_server_that_it_reports_to_and_dvc_waits_for_it(fresh: Path, start: Start) -> None:
    services, credentials = running(fresh), account(fresh)
    assert services is not None and credentials is not None

    def recorded() -> set[str]:
        return {path.stem for path in (fresh / ".cursus" / "flow-runs").glob("*.json")}

    ended = recorded()
    assert len(ended) >= 4, "three that trained, and one that promoted"
    params = fresh / "params.yaml"
    params.write_text(params.read_text() + "    clean: {min_characters: 120}\n")
    # by default, Prefect tries for longer to reach the server that has ended
    outlives = run(start, "brief", "--until", "general", PREFECT_CLIENT_MAX_RETRIES="1")
    log = fresh / ".cursus" / "logs" / "data-small.log"
    until(lambda: "Running stage 'clean@small'" in log.read_text(), outlives)
    dvc, data, gc = start("dvc", "repro"), start("data"), start("store", "gc", "--days", "0", "--delete")
    until(lambda: recorded() - ended, outlives)
    assert unfinished(f"{services.prefect_url}/api", credentials.line, ended) == []
    (flow,) = flow_of(outlives)
    flow.suspend()  # however slow the machine is, the server ends in the middle of the run
    ends = start("down")
    assert ends.ended() == 0, ends.written
    flow.resume()
    check(outlives, dvc, data, gc)
    assert SERVER_GONE in outlives.sentences and WAITING in dvc.sentences
    assert re.search(r"^general +(\d+m)?\d+s", outlives.written, re.MULTILINE), outlives.written
    assert "a run is using this store; waiting for it to end" in gc.sentences
    assert is_current("small", fresh) and not processes_of(fresh)
    with sqlite3.connect(fresh / ".cursus" / "mlflow.db") as database:
        assert not database.execute("select count(*) from runs where status = 'RUNNING'").fetchone()[0]
    database.close()
