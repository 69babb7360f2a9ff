from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tasks.servers import processes
from tasks.servers.services import Services, down, running

from .conftest import Launch, Start, ask, processes_of


def listening_addresses(root: Path) -> set[str]:
    return {
        connection.laddr.ip
        for process in processes_of(root)
        for connection in process.net_connections(kind="inet")
        if connection.status == psutil.CONN_LISTEN
    }


@pytest.mark.timeout(240)
def test_up_starts_all_three_on_loopback(first: Launch, servers: Services, project: Path, taken_port: int) -> None:
    services = first.services
    addresses = (services.prefect_url, services.mlflow_url)
    assert addresses == (servers.prefect_url, servers.mlflow_url), "what a test before this one stopped is repaired"
    assert ask(f"{services.prefect_url}/api/health") is True
    assert processes.answers(f"{services.mlflow_url}/health")
    assert services.prefect_url in first.said[-1] and services.mlflow_url in first.said[-1]
    assert any(f"Port {taken_port} is in use by another program" in line for line in first.said)
    assert listening_addresses(project) == {"127.0.0.1"}
    deployed = {deployment["name"] for deployment in ask(f"{services.prefect_url}/api/deployments/filter", {})}
    assert deployed == {
        "regime",
        "urgent",
        "nightly",
        "data",
        "stage",
        "claim",
        "reproduce",
        "promote",
        "lattice",
        "compress",
    }
    automations = ask(f"{services.prefect_url}/api/automations/filter", {})
    names = {automation["name"] for automation in automations}
    assert names == {"crash-zombie-runs", "report-failed-scheduled-runs"}


def test_a_second_up_says_that_they_run_and_starts_nothing(servers: Services, start: Start, project: Path) -> None:
    before = {process.pid for process in processes_of(project)}
    again = start()
    assert again.services == servers
    assert again.said[0].startswith("Already running.")
    assert {process.pid for process in processes_of(project)} == before


@pytest.mark.timeout(240)
def test_a_form_is_renewed_when_what_it_is_made_of_has_changed(servers: Services, start: Start, project: Path) -> None:
    def known() -> list[str]:
        deployment = ask(f"{servers.prefect_url}/api/deployments/name/data/data")
        fields = deployment["parameter_openapi_schema"]["definitions"]["DataConfig"]["properties"]
        return list(fields["dataset"]["enum"])

    params = project / "params.yaml"
    before = params.read_text()
    assert known() == ["small"]
    try:
        params.write_text(before + before.partition("datasets:\n")[2].replace("small:", "mine:", 1))
        assert "registered again" in start().said[0]
        assert known() == ["small", "mine"]
        assert "registered again" not in start().said[0]
    finally:
        params.write_text(before)
        start()
    assert known() == ["small"]


@pytest.mark.timeout(240)
def test_killed_servers_are_started_again_at_the_same_addresses(servers: Services, start: Start, project: Path) -> None:
    assert servers.mlflow is not None and servers.worker is not None
    # killing only the parents: their children live on as orphans and hold the ports
    victims = [psutil.Process(victim.pid) for victim in (servers.mlflow, servers.worker)]
    for victim in victims:
        victim.kill()
    psutil.wait_procs(victims, timeout=10)
    assert running(project) is None
    repaired = start().services
    assert (repaired.prefect_url, repaired.mlflow_url) == (servers.prefect_url, servers.mlflow_url)
    assert repaired.prefect == servers.prefect
    assert repaired.mlflow != servers.mlflow and repaired.worker != servers.worker
    assert running(project) == repaired


def test_an_up_that_was_killed_half_way_is_cleared_by_down(tmp_path: Path, project: Path) -> None:
    """Kill -9 of `up` itself, as soon as it has started its first server."""
    root = tmp_path / "half"
    root.mkdir()
    script = (
        "from pathlib import Path; from tasks.servers.services import up; "
        f"up(Path({str(root)!r}), prefect_port=0, mlflow_port=0)"
    )
    started = subprocess.Popen([sys.executable, "-c", script], cwd=project, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not processes_of(root) and time.monotonic() < deadline:
        time.sleep(0.05)
    started.kill()
    started.wait()
    assert processes_of(root)
    said: list[str] = []
    down(root, notify=said.append)
    assert processes_of(root) == []
    assert "prefect" in said[0]
    down(root, notify=said.append)
    assert said[1] == "Nothing was running."


def test_down_leaves_a_stranger_with_a_recorded_id_alone(tmp_path: Path) -> None:
    """A process id that the system has given to another program since is not ours to stop."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        root = tmp_path / "checkout"
        (root / ".cursus").mkdir(parents=True)
        old = processes.Process(pid=stranger.pid, created=psutil.Process(stranger.pid).create_time() - 3600)
        record = Services(prefect_url="http://127.0.0.1:1", mlflow_url="http://127.0.0.1:1", prefect=old)
        (root / ".cursus" / "services.json").write_text(record.model_dump_json())
        down(root, notify=lambda _: None)
        assert stranger.poll() is None
        assert not (root / ".cursus" / "services.json").exists()
    finally:
        stranger.kill()
        stranger.wait()


def test_a_taken_port_is_seen_and_a_freed_one_is_free_at_once() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert processes.port_taken(port)
    assert not processes.port_taken(port)
