"""`cursus compress` as a user runs it: refused before anything computes, planned, computed once, kept, used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.lineage.store import Store
from tests.flows.conftest import Cursus, FirstRun, command_line, users_shell, write_computed

ROUTES = ("--route", "quarter", "--route", "bits4", "--runtime", "onnxruntime_int8")


@pytest.fixture(scope="module")
def checkout(first: FirstRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of its own: other tests count the runs of the first one."""
    return write_computed(tmp_path_factory.mktemp("compress"), first, tmp_path_factory)


@pytest.fixture(scope="module")
def cursus(checkout: Path, server: dict[str, str]) -> Cursus:
    return command_line(checkout, users_shell(checkout) | server)


@pytest.fixture(scope="module")
def teacher(checkout: Path) -> str:
    records = Store(checkout / "data" / "store").all()
    return next(one.fingerprint for one in records if (one.stage, one.seed) == ("classify", 0))[:12]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--within", "10"), "10 has no unit"),
        (("--within", "10 parrots"), "'parrots' is no unit of size, time or score"),
        (("--within", "0 MB"), "no model has 0 MB"),
        (("--within", "10 MB", "--budget", "20"), "for example 20m"),
        (("--within", "10 MB", "--route", "halv"), "there is no route 'halv'. Did you mean 'half'?"),
        (("--within", "10 MB", "--runtime", "onnx"), "there is no runtime 'onnx'. Known: onnxruntime_fp32"),
        (("--within", "10 MB", "--budget", "2s", *ROUTES), "2 seconds hold no route; the quickest, bits"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_computes(
    arguments: tuple[str, ...], reason: str, cursus: Cursus, teacher: str, checkout: Path
) -> None:
    before = len(list(Store(checkout / "data" / "store").all()))
    refused = cursus("compress", teacher, *arguments)
    assert refused.returncode == 2 and reason in refused.stderr, refused.stderr
    assert "Traceback" not in refused.stderr and len(list(Store(checkout / "data" / "store").all())) == before


def test_a_model_that_is_itself_compressed_is_refused(cursus: Cursus, checkout: Path) -> None:
    records = Store(checkout / "data" / "store").all()
    small = next(one.fingerprint for one in records if one.stage == "small")
    refused = cursus("compress", small[:12], "--within", "1 MB")
    assert refused.returncode == 2 and "is itself compressed (select_layers in stage small)" in refused.stderr
    folder = cursus("compress", "recipes", "--within", "1 MB")
    assert folder.returncode == 2 and "checkpoint 'recipes': no config.json in recipes" in folder.stderr


def test_routes_are_planned_computed_once_kept_and_predicted_with(
    cursus: Cursus, checkout: Path, teacher: str, tmp_path: Path
) -> None:
    planned = cursus("compress", teacher, "--within", "1 MB, 1 s, -90 points", *ROUTES, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "2 of 2 routes, about" in planned.stdout and "arXiv:1909.05840" in planned.stdout
    out = tmp_path / "kept"
    command = ("compress", teacher, "--within", "1 MB, 1 s, -90 points", *ROUTES, "--to", str(out), "--threads", "1")
    done = cursus(*command, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Serve " in done.stdout and "than the teacher in torch_fp32" in done.stdout
    record = json.loads((out / "compression.json").read_text())
    assert f"Serve {record['measured']['stage']} · {record['runtime']}" in record["decision"]
    size = sum(path.stat().st_size for path in out.iterdir() if not path.name.startswith(("compression.", "export.")))
    assert record["measured"]["bytes"] == pytest.approx(size, rel=0.02), (
        "the bytes on disk are those that were promised"
    )
    assert 'viewBox="0 0 480' in (out / "compression.svg").read_text()
    answered = cursus("predict", "--model", str(out), "Wait for all tasks of an event loop.")
    assert answered.returncode == 0 and "Wait for all tasks" in answered.stdout, answered.stderr
    (page,) = (checkout / "reports").glob("*/compression.html")
    assert str(page) in done.stdout and "Score against size" in page.read_text()
    execution = json.loads((page.parent / "execution.json").read_text())
    assert execution["measurement"], "nothing predicts with its last model by default"

    again = cursus(*command)
    assert again.returncode == 0 and "starting Prefect" not in again.stderr, "nothing is left to compute"
    assert again.stdout.partition("Serve ")[2] == done.stdout.partition("Serve ")[2]
    unreachable = cursus("compress", teacher, "--within", "1 KB", *ROUTES, "--to", str(out), timeout=600)
    assert unreachable.returncode == 1, unreachable.stderr
    assert "Nothing is within 0.001 MB; nearest is" in unreachable.stdout and "too many megabytes" in unreachable.stdout
