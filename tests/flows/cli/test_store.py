"""`cursus store`: a model goes to another project with its ancestors; what is damaged or hostile is one sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from flows.cli.app import app
from pipelines.lineage.store import Store
from tasks.datasets.planning import store_folder
from tests.pipelines.lineage.exports import HOSTILE, publish


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """Commands set the environment of their process, which is that of all tests here."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def projects(tmp_path: Path) -> tuple[Path, Path]:
    """Two projects: one with two artifacts, the second of which started from the first, and an empty one."""
    roots = tmp_path / "one", tmp_path / "other"
    for root in roots:
        root.mkdir()
        (root / "params.yaml").write_text("datasets: {}\n", encoding="utf-8")
    return roots


@pytest.fixture
def model(projects: tuple[Path, Path]) -> str:
    """The fingerprint of the second artifact of the first project."""
    store = Store(store_folder(projects[0]))
    return publish(store, "domain", start=publish(store, "general"))


def store(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["store", *arguments], env={"CURSUS_ROOT": str(root)})


def test_a_model_goes_to_another_project_with_what_it_was_made_from(
    projects: tuple[Path, Path], model: str, tmp_path: Path
) -> None:
    one, other = projects
    file = tmp_path / "model.tar"
    exported = store(one, "export", model[:12], str(file))
    assert exported.exit_code == 0, exported.output
    assert exported.stdout.startswith(f"{file}: 2 artifacts, ")
    imported = store(other, "import", str(file))
    assert imported.exit_code == 0, imported.output
    first, *names = imported.stdout.split("\n")[:-1]
    assert first == "2 artifacts added" and {*names} == Store(store_folder(one)).fingerprints() and model in names
    assert store(other, "import", str(file)).stdout == "0 artifacts added\n"
    assert store(other, "verify").stdout == "2 artifacts, all intact\n"
    again = store(one, "export", model[:12], str(file))
    assert again.exit_code == 2 and "already exists" in again.stderr


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_sentence(projects: tuple[Path, Path], tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.tar").write_bytes(HOSTILE[name][0])
    refused = store(projects[1], "import", str(tmp_path / "bad.tar"))
    assert refused.exit_code == 2 and refused.stdout == ""
    assert (
        refused.stderr.startswith("error: ") and refused.stderr.count("\n") == 1 and HOSTILE[name][1] in refused.stderr
    )
    assert Store(store_folder(projects[1])).fingerprints() == set()


def test_what_was_changed_in_the_store_is_named(projects: tuple[Path, Path], model: str) -> None:
    one = projects[0]
    weights = store_folder(one) / model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    damaged = store(one, "verify")
    assert damaged.exit_code == 2 and f"{weights}: differs from what was published" in damaged.stderr
    assert damaged.stderr.count("differs") == 1, "the other artifact is intact"
