"""Training as jobs of a real Slurm: stopped, queued again, left by its flow, refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RecipeError, StageError
from pipelines.lineage.results import METRICS
from pipelines.recipe.job import Job
from tasks.launchers import Launcher, slurm_queue
from tasks.launchers.settings import load_training
from tasks.launchers.slurm import job_name
from tasks.launchers.slurm_script import render
from tests.steps import ROOT
from tests.tasks.launchers.slurm_cluster import Cluster
from tests.tasks.launchers.slurm_jobs import Heard, Running, checkpoints, opened, shown, started_again, until, warn

FLOW = """
import sys
from pathlib import Path
from pipelines.recipe.job import Job
from tasks.launchers import Launcher

class Told:
    def progressed(self, job, lines): print("progressed", flush=True)
    def finished(self, job, result): print("finished", flush=True)

job = Job.model_validate_json(Path(sys.argv[1]).read_text())
with Launcher.model_validate({"name": "slurm", "cpus_per_task": 1}).open(Path.cwd(), Path(sys.argv[2])) as launcher:
    launcher.run(job, Told())
"""


@pytest.fixture(scope="module")
def undisturbed(slurm_cluster: Cluster, make_job: Callable[[], Job]) -> tuple[Job, list[str]]:
    """A job whose ranks were left in peace, and what was seen of Slurm's number for it: its flow was killed, and
    another came."""
    job = make_job()
    order = job.out.parent / "job.json"
    order.write_text(job.model_dump_json(), encoding="utf-8")
    command = [sys.executable, "-c", FLOW, str(order), str(job.out.parent / "training.log")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as flow:
        assert flow.stdout is not None and flow.stdout.readline() == b"progressed\n"
        flow.kill()
    first = shown(job, "JobId")
    with opened(job) as launcher:
        heard = Heard()
        launcher.run(job, heard)
    assert len(heard.results) == 1 and heard.results[0].resumed_from_step is None
    return job, [str(first), str(shown(job, "JobId"))]


def test_a_flow_that_was_killed_finds_its_job(undisturbed: tuple[Job, list[str]]) -> None:
    job, (before, after) = undisturbed
    assert before == after and before != "None"
    assert shown(job, "Restarts") == "0"


def test_warned_of_its_limit_it_ends_as_if_never(
    undisturbed: tuple[Job, list[str]], make_job: Callable[[], Job]
) -> None:
    whole, job = undisturbed[0], make_job()
    with opened(job) as launcher:
        running = Running(launcher, job)
        until(lambda: checkpoints(job))
        warn(job)
        until(lambda: started_again(job, 1))
        running.wait()
    assert not running.errors
    (result,) = running.heard.results
    assert result.resumed_from_step is not None and result.resumed_from_step >= 9
    for name in ("model.safetensors", METRICS):
        assert (job.out / name).read_bytes() == (whole.out / name).read_bytes()


def test_what_slurm_refuses_is_told_in_its_words(slurm_cluster: Cluster, make_job: Callable[[], Job]) -> None:
    job = make_job()
    with (
        opened(job, partition="nowhere") as launcher,
        pytest.raises(StageError, match="Slurm rejected the command: .*nowhere"),
    ):
        launcher.run(job, Heard())
    assert slurm_queue.find(job_name(job)) is None


@pytest.mark.parametrize(
    "field", [{"partition": "gpu; reboot"}, {"time": "1 hour"}, {"mem": "$(id)"}, {"warning": 1}, {"script": "x"}]
)
def test_options_are_words_of_slurm_and_nothing_else(field: dict[str, Any], tmp_path: Path) -> None:
    block = {"training": {"launcher": {"name": "slurm", **field}}}
    (tmp_path / "params.yaml").write_text(json.dumps(block), encoding="utf-8")  # which is YAML as well
    with pytest.raises(RecipeError, match=f"training.launcher.*{next(iter(field))}"):
        load_training(tmp_path)


def test_whatever_a_value_holds_the_script_assigns_it() -> None:
    value = "a'b\"c $(touch x) `id` ; # \\ %j"
    script = render({"job-name": "x"}, {"FIRST": value}, {"second": value})
    head = script.partition("# Trap both signals")[0]
    said = subprocess.run(
        ["bash", "-c", f'{head}\nprintf "%s\\n" "$FIRST" "$second"'], capture_output=True, text=True, check=True
    )
    assert said.stdout.splitlines() == [value, value] and not said.stderr
    with pytest.raises(StageError, match="line break"):
        render({"job-name": "x\n#SBATCH --wrap=id"}, {}, {})


def test_without_slurm_it_says_where_to_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StageError, match="sbatch is not on this machine's PATH"):
        Launcher.model_validate("slurm").open(ROOT, tmp_path / "log")
