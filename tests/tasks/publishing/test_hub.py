"""`cursus publish MODEL hub:owner/name`, by the Hub's own client, to a hub on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from tests.tasks.conftest import Builder
from tests.tasks.publishing.hub import Hub, serving

REPOSITORY = "ada/topics"
TOKEN = "hf_SecretOfTheTests0123456789"
UPLOAD = """
import sys
from pathlib import Path
from pipelines.errors import CursusError
from tasks.publishing.publish import upload
try:
    print(upload(Path(sys.argv[1]), sys.argv[2], print))
except CursusError as error:
    print("refused:", error)
"""
"""What the command does with the folder that it has written."""
FILES = {"README.md": b"---\nlicense: mit\n---\n# Topics\n", "config.json": b"{}", "deep/model.safetensors": bytes(9)}


def environment(hub: Hub, token: str = TOKEN, **others: str) -> dict[str, str]:
    """That of a process whose hub is `hub`."""
    local = {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1", "HF_HUB_OFFLINE": "0"}
    return {**os.environ, **local, "HF_ENDPOINT": hub.url, "HF_TOKEN": token, **others}


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small published folder."""
    for name, content in FILES.items():
        (tmp_path / "model" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "model" / name).write_bytes(content)
    return tmp_path / "model"


def test_a_model_on_the_hub_is_the_folder_that_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, classifier_folder: Path
) -> None:
    """Weights go to the hub's storage, as large files do; the token goes to the hub, and nowhere else."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "params.yaml").write_text("datasets: {}\n", encoding="utf-8")
    monkeypatch.setenv("CURSUS_ROOT", str(root))
    model = Builder(root, classifier_folder).step("classify", "finetune").fingerprint
    with serving(Hub(REPOSITORY, TOKEN, large=(".safetensors",))) as hub:
        # the client's newer protocol of large files is a library in Rust with a server of its own kind
        done = subprocess.run(
            [sys.executable, "-m", "cursus", "publish", model, f"hub:{REPOSITORY}"],
            env=environment(hub, HF_HUB_DISABLE_XET="1"),
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    assert f"published {hub.url}/{REPOSITORY}" in done.stdout
    assert CliRunner().invoke(app, ["publish", model, str(tmp_path / "local")]).exit_code == 0
    assert hub.files == content_of(tmp_path / "local") and {"README.md", "lineage.json"} < {*hub.files}
    (created,) = [one for one in hub.requests if one.path == "/api/repos/create"]
    assert created.body == {"name": "topics", "organization": "ada", "visibility": "private"}
    stored = [one for one in hub.requests if one.path.startswith("/storage/")]
    assert len(stored) == len([name for name in hub.files if name.endswith(".safetensors")]) > 0
    assert {one.authorization for one in stored} == {None}
    assert {one.authorization for one in hub.requests if one not in stored} == {f"Bearer {TOKEN}"}
    assert TOKEN not in done.stdout + done.stderr
    assert not [name for name, content in content_of(root).items() if TOKEN.encode() in content]


def test_the_client_as_it_is_installed_uploads_a_folder(folder: Path) -> None:
    with serving(Hub(REPOSITORY, TOKEN)) as hub:
        command = [sys.executable, "-c", UPLOAD, str(folder), REPOSITORY]
        done = subprocess.run(command, env=environment(hub), capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"uploading to {REPOSITORY} …", f"{hub.url}/{REPOSITORY}"], done.stderr
    assert hub.files == FILES
    assert {one.authorization for one in hub.requests} == {f"Bearer {TOKEN}"} and TOKEN not in done.stderr


def test_a_hub_that_is_not_reached_is_one_sentence(folder: Path) -> None:
    closed = Hub(REPOSITORY, TOKEN, url="http://127.0.0.1:9")  # the port of `discard`, where nothing listens
    command = [sys.executable, "-c", UPLOAD, str(folder), REPOSITORY]
    done = subprocess.run(command, env=environment(closed), capture_output=True, text=True)
    assert done.stdout.splitlines()[-1].startswith(f"refused: the hub did not take {REPOSITORY}: "), done.stderr
    assert TOKEN not in done.stdout + done.stderr


def test_a_token_that_the_hub_refuses_is_in_no_message(folder: Path) -> None:
    with serving(Hub(REPOSITORY, TOKEN)) as hub:
        command = [sys.executable, "-c", UPLOAD, str(folder), REPOSITORY]
        done = subprocess.run(command, env=environment(hub, f"{TOKEN}-old"), capture_output=True, text=True)
    refused = done.stdout.splitlines()[-1]
    assert refused.startswith(f"refused: the hub did not take {REPOSITORY}: ") and "401" in refused
    assert hub.files == {} and TOKEN not in done.stdout + done.stderr
