"""What deploy/ ships cannot run here: it is held against what it names (files, commands, versions, schemas) instead."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import prefect
import pytest
from ruamel.yaml import YAML

from flows.cli.app import app
from tests.steps import RECIPES, ROOT

DEPLOY = ROOT / "deploy"
SECRET = re.compile(r"TOKEN|AUTH|PASSWORD|SECRET|TRACKING_URI|CONNECTION_URL")
PLACEHOLDER = re.compile(r"\{\{ (\w+) \}\}")
TEMPLATES = {"docker": DEPLOY / "docker/work-pool.json", "kubernetes": DEPLOY / "kubernetes/work-pool.json"}


def documents(path: Path) -> list[dict[str, Any]]:
    return [dict(document) for document in YAML(typ="safe").load_all(path)]


def manifests() -> dict[str, dict[str, Any]]:
    found = [one for path in sorted((DEPLOY / "kubernetes").glob("*.yaml")) for one in documents(path)]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}


def compose() -> dict[str, Any]:
    (one,) = documents(DEPLOY / "docker/compose.yaml")
    return one


def dockerfile() -> list[tuple[str, str]]:
    """The instructions: word and what follows it."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", (DEPLOY / "docker/Dockerfile").read_text(), flags=re.M))
    return [(line.split()[0], line.split(maxsplit=1)[1]) for line in text.splitlines() if line.strip()]


@cache
def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    return dict(line.split(";")[0].strip().split("==") for line in lines if re.match(r"[\w.-]+==", line))


def pods(value: Any) -> Iterator[dict[str, Any]]:
    """Every specification of a pod in a manifest."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for inner in value.values():
            yield from pods(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from pods(inner)


def every_pod() -> list[dict[str, Any]]:
    job = json.loads(TEMPLATES["kubernetes"].read_text())["job_configuration"]["job_manifest"]
    return [pod for manifest in [*manifests().values(), job] for pod in pods(manifest)]


def test_every_manifest_is_one_of_kubernetes_and_names_what_exists() -> None:
    found = manifests()
    assert all(one["apiVersion"] and one["metadata"]["name"] for one in found.values())
    assert (
        found["RayJob/cursus-run"]["spec"]["clusterSelector"]["ray.io/cluster"] == "cursus"
        and "RayCluster/cursus" in found
    )
    claims = {
        volume["persistentVolumeClaim"]["claimName"]
        for pod in every_pod()
        for volume in pod.get("volumes", [])
        if "persistentVolumeClaim" in volume
    }
    assert {f"PersistentVolumeClaim/{claim}" for claim in claims} <= set(found)
    for pod in every_pod():
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        assert {mount["name"] for one in pod["containers"] for mount in one["volumeMounts"]} == volumes
    binding = found["RoleBinding/cursus-worker"]
    for kind, name in [(binding["roleRef"]["kind"], binding["roleRef"]["name"]), ("ServiceAccount", "cursus-worker")]:
        assert f"{kind}/{name}" in found
    labels = found["Deployment/cursus-worker"]["spec"]
    assert labels["selector"]["matchLabels"] == labels["template"]["metadata"]["labels"]


def test_no_pod_is_root_unbounded_or_holds_a_secret() -> None:
    assert len(every_pod()) == 4
    for pod in every_pod():
        for container in pod["containers"]:
            own, around = container["securityContext"], pod.get("securityContext", {})
            assert (own.get("runAsNonRoot") or around["runAsNonRoot"]) and (
                own.get("runAsUser") or around["runAsUser"]
            ) == 1000
            assert own["allowPrivilegeEscalation"] is False and own["capabilities"] == {"drop": ["ALL"]}
            assert set(container["resources"]) == {"requests", "limits"}
            variables = container.get("env", [])
            inline = [
                one["name"]
                for one in variables
                if isinstance(one, dict) and "value" in one and SECRET.search(one["name"])
            ]
            assert not inline, "a secret belongs into a Secret"
    (worker,) = next(pods(manifests()["Deployment/cursus-worker"]))["containers"]
    assert worker["livenessProbe"]["httpGet"]["path"] == worker["readinessProbe"]["httpGet"]["path"] == "/health"


def test_what_is_run_exists() -> None:
    commands = {point.name for point in entry_points(group="console_scripts")}
    ours = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    entry, *words = manifests()["RayJob/cursus-run"]["spec"]["entrypoint"].split()
    assert (ROOT / entry.removeprefix("/opt/cursus/")).stat().st_mode & stat.S_IXUSR
    assert words[0] in commands and words[1] in ours and (RECIPES / f"{words[2]}.yaml").is_file()
    (worker,) = next(pods(manifests()["Deployment/cursus-worker"]))["containers"]
    lines = [worker["args"], *(one["command"] for one in compose()["services"].values() if "command" in one)]
    for line in lines:
        for command in " ".join(line).removeprefix("sh -c ").split("&&"):
            program, *words = command.split()
            assert program in commands or (program == "python" and find_spec(words[1]) is not None), command


def test_versions_are_those_of_the_lock() -> None:
    ray = manifests()["RayCluster/cursus"]["spec"]["rayVersion"]
    (worker,) = next(pods(manifests()["Deployment/cursus-worker"]))["containers"]
    assert ray == locked()["ray"] and worker["image"].startswith(f"prefecthq/prefect:{locked()['prefect']}-")
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = dict(said.split("=") for word, said in dockerfile() if word == "ARG" and "=" in said)["PYTHON"]
    assert f">={python}" == allowed["requires-python"], (
        "the oldest Python that is supported is the one that is tested most"
    )
    extras = set(re.findall(r"\.\[([\w,]+)\]", " ".join(said for _, said in dockerfile()))[0].split(","))
    assert extras <= set(allowed["optional-dependencies"])


def test_the_image_is_built_of_files_that_exist_and_ends_without_root() -> None:
    for word, said in dockerfile():
        if word == "COPY" and not said.startswith("--from"):
            assert all((ROOT / source).exists() for source in said.split()[:-1]), said
        if word == "FROM":
            assert ":" in said.split()[0], "a base image has a version"
    words = [word for word, _ in dockerfile()]
    assert dict(dockerfile())["USER"] == "1000" and words.index("USER") < words.index("ENTRYPOINT")
    entry = json.loads(dict(dockerfile())["ENTRYPOINT"])[-1]
    assert (ROOT / entry.removeprefix("/opt/cursus/")).stat().st_mode & stat.S_IXUSR


def test_the_image_holds_no_secret_and_no_state_of_the_checkout() -> None:
    ignored = set((DEPLOY / "docker/Dockerfile.dockerignore").read_text().splitlines())
    # credentials of a DVC remote are in config.local
    assert {".cursus", ".dvc/config.local", ".dvc/cache", ".dvc/tmp", "deploy/docker/.env"} <= ignored
    of_git = [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line.startswith("/")]
    assert {name.removesuffix("/*") for name in of_git} <= ignored, "what git leaves out, the image leaves out"


def test_compose_publishes_on_loopback_and_asks_for_passwords() -> None:
    services = compose()["services"]
    for name, service in services.items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert service["image"] == "cursus" or ":" in service["image"]
        assert "no-new-privileges:true" in service["security_opt"] and not service.get("privileged")
        assert set(service.get("depends_on", {})) <= set(services)
        for variable, value in service.get("environment", {}).items():
            assert not SECRET.search(variable) or ("${" in value and ":?" in value), (
                f"{name}: {variable} is written down"
            )
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source in compose()["volumes"] or (DEPLOY / "docker" / source).is_file(), volume
        for other, condition in service.get("depends_on", {}).items():
            assert condition["condition"] != "service_healthy" or "healthcheck" in services[other]


@pytest.mark.parametrize("kind", TEMPLATES)
def test_a_work_pool_is_one_that_prefects_worker_reads(kind: str) -> None:
    ours = json.loads(TEMPLATES[kind].read_text())
    shipped = Path(prefect.__file__).parent / "server/api/collections_data/views/aggregate-worker-metadata.json"
    theirs = json.loads(shipped.read_text())[f"prefect-{kind}"][kind]["default_base_job_configuration"]
    assert set(ours["job_configuration"]) <= set(theirs["job_configuration"])
    properties = ours["variables"]["properties"]
    assert set(properties) <= set(theirs["variables"]["properties"])
    assert set(PLACEHOLDER.findall(json.dumps(ours["job_configuration"]))) == set(properties), (
        "each is declared, each is used"
    )
    for name, said in properties.items():
        assert said["type"] == theirs["variables"]["properties"][name]["type"]
    # whoever may create a run chooses its resources, and nothing that decides which code it executes
    assert ours["variables"]["additionalProperties"] is False
    assert not set(properties) & {"command", "env", "image", "volumes", "networks", "network_mode", "privileged"}


def test_the_entry_point_lays_out_the_checkout_and_leaves_what_is_the_users(tmp_path: Path) -> None:
    image, root = tmp_path / "image", tmp_path / "root"
    for name, text in {"params.yaml": "shipped", "recipes/regime.yaml": "shipped", "flows/cli/app.py": "one"}.items():
        (image / name).parent.mkdir(parents=True, exist_ok=True)
        (image / name).write_text(text)

    def start() -> str:
        environment = {**os.environ, "CURSUS_IMAGE": str(image), "CURSUS_ROOT": str(root), "CURSUS_JOIN_RAY": ""}
        command = [str(DEPLOY / "docker/entrypoint.sh"), "pwd"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()

    assert start() == str(root)
    (root / "params.yaml").write_text("mine")
    (root / "recipes/own.yaml").write_text("mine")
    (image / "flows/cli/app.py").write_text("two")
    (image / "recipes/t5.yaml").write_text("shipped")
    start()
    assert {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()} == {
        "params.yaml": "mine",
        "recipes/regime.yaml": "shipped",
        "recipes/own.yaml": "mine",
        "recipes/t5.yaml": "shipped",
        "flows/cli/app.py": "two",
        ".image": (root / ".image").read_text(),
    }
    (root / "flows/cli/app.py").write_text("touched")
    start()
    assert (root / "flows/cli/app.py").read_text() == "touched", "the same image changes nothing"
