"""Requests of runs with a mistake, at a real server and worker: refused with what was meant, and without a process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tasks.servers.services import Services

from .conftest import ACCOUNT, ask

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient

PATIENCE = 120


@pytest.fixture
def client(servers: Services) -> Iterator[SyncPrefectClient]:
    from prefect.client.orchestration import SyncPrefectClient

    with SyncPrefectClient(f"{servers.prefect_url}/api", auth_string=ACCOUNT) as client:
        yield client


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("regime/regime", {"dataset": "smal"}, "'smal' is not one of the choices. Did you mean 'small'?"),
    (
        "regime/nightly",
        {"recipe": "bert", "variants": ["minilm"]},
        "'minilm' is not one of the choices. Known: hour, short_then_full.",
    ),
    ("stage/stage", {"stage": "genral"}, "'genral' is not one of the choices. Did you mean 'general'?"),
    ("stage/stage", {}, "'stage' is a required property"),
    ("claim/claim", {"claim": "crf/entity"}, "'crf/entity' is not one of the choices. Did you mean 'crf/entities'?"),
]


def test_the_server_refuses_a_mistake_when_a_run_is_created(servers: Services, client: SyncPrefectClient) -> None:
    from prefect.exceptions import PrefectHTTPStatusError

    before = ask(f"{servers.prefect_url}/api/flow_runs/count", {})
    for name, config, said in REFUSED:
        deployment = client.read_deployment_by_name(name)
        with pytest.raises(PrefectHTTPStatusError) as refused:
            client.create_flow_run_from_deployment(deployment.id, parameters={"config": config})
        assert refused.value.response.status_code == 409
        assert said in refused.value.response.json()["detail"]
    assert ask(f"{servers.prefect_url}/api/flow_runs/count", {}) == before


@pytest.mark.timeout(240)
def test_the_worker_refuses_a_mistake_that_the_server_did_not_check(
    servers: Services, client: SyncPrefectClient, project: Path
) -> None:
    """As with *Validate parameters* switched off in the UI, or with a dataset that was renamed meanwhile."""
    api = f"{servers.prefect_url}/api"
    runs = {}
    for name, config, said in [
        ("regime/regime", {"dataset": "smal"}, "no dataset is called 'smal'. Did you mean 'small'?"),
        ("stage/stage", {"stage": "genral"}, "recipe regime has no stage 'genral'. Did you mean 'general'?"),
        ("lattice/lattice", {"seed": 3}, "'seed' was unexpected"),
    ]:
        deployment = client.read_deployment_by_name(name).id
        request = {"parameters": {"config": config}, "enforce_parameter_schema": False}
        runs[ask(f"{api}/deployments/{deployment}/create_flow_run", request)["id"]] = said
    deadline = time.monotonic() + PATIENCE
    for run, said in runs.items():
        while (known := ask(f"{api}/flow_runs/{run}"))["state_type"] in {"SCHEDULED", "PENDING"}:
            assert time.monotonic() < deadline, known["state"]
            time.sleep(0.3)
        assert known["state_type"] == "FAILED" and said in known["state"]["message"], known["state"]
        assert known["run_count"] == 0, "a process was started"
        assert not (project / ".cursus" / "flow-runs" / f"{run}.json").exists()
        logged = ask(f"{api}/logs/filter", {"logs": {"flow_run_id": {"any_": [run]}}})
        assert not any("Traceback" in line["message"] for line in logged)
