"""Training as jobs of a real Slurm: stopped, queued again, left by its flow, refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RecipeError, StageError
from pipelines.job import METRICS, RESULT, SCRATCH, Job, Result, Runtime
from pipelines.lineage.provenance import DataSource
from pipelines.training.fit import CHECKPOINTS
from tasks.launchers import Launcher, slurm, slurm_queue
from tasks.launchers.slurm import Slurm, SlurmLaunching, job_name
from tasks.launchers.slurm_script import render
from tasks.training_settings import load_training
from tests.launchers.slurm_cluster import Cluster, missing
from tests.steps import ROOT, job_of, library_of, plan_of

RECIPE = """\
name: brief
paper: arXiv:1810.04805
stages:
  general:
    kind: pretrain
    corpus: general
    tokenizer: {name: wordpiece, vocab_size: 512}
    backbone:
      name: transformer
      positions: 64
      dims: {hidden_size: 32, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 64}
    corruption: {name: token_mask, rate: 0.2}
    head: masked_lm
    objective: masked_lm
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {tokens: 102400, batch_tokens: 1024, length: 32}
"""
RUNTIME = Runtime(log_every=7, checkpoint_every=9, devices=2)
FOLDER = "out of $HOME %j 'it'"
"""What a folder may be called, and what a shell and sbatch would make of it if it were not quoted."""
SECONDS = 120
FLOW = """
import sys
from pathlib import Path
from pipelines.job import Job
from tasks.launchers import Launcher

class Told:
    def progressed(self, job, lines): print("progressed", flush=True)
    def finished(self, job, result): print("finished", flush=True)

job = Job.model_validate_json(Path(sys.argv[1]).read_text())
with Launcher.model_validate({"name": "slurm", "cpus_per_task": 1}).open(Path.cwd(), Path(sys.argv[2])) as launcher:
    launcher.run(job, Told())
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := missing():
        pytest.skip(reason)
    with Cluster() as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(started.configuration))
        patch.setattr(slurm, "LOOK_SECONDS", 0.5)
        patch.setattr(slurm, "END_LOOK_SECONDS", 0.2)
        yield started


@pytest.fixture(scope="module")
def make_job(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Job]:
    """A job of a few seconds, writing into a folder of its own."""
    recipes = tmp_path_factory.mktemp("recipes")
    (step,) = plan_of(library_of(recipes, brief=RECIPE), "brief", sources).steps

    def make() -> Job:
        return job_of(step, {}, tables, tmp_path_factory.mktemp("job") / FOLDER, RUNTIME)

    return make


class Heard:
    """What a flow is told."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.results: list[Result] = []

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        self.steps += [line["step"] for line in lines]

    def finished(self, job: Job, result: Result) -> None:
        self.results.append(result)


class Running:
    """A job that runs in a thread, as a task of a flow runs it."""

    def __init__(self, launcher: SlurmLaunching, job: Job) -> None:
        self.heard, self.job = Heard(), job
        self.error: Exception | None = None
        self._launcher = launcher
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._launcher.run(self.job, self.heard)
        except Exception as error:
            self.error = error

    def wait(self) -> None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def until(reached: Callable[[], Any]) -> Any:
    """The first answer that is not empty."""
    deadline = time.monotonic() + SECONDS
    while not (answer := reached()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


def opened(job: Job, **fields: Any) -> SlurmLaunching:
    return Slurm.model_validate({"cpus_per_task": 1, **fields}).open(ROOT, job.out.parent / "training.log")


def alone(job: Job) -> Job:
    """The job, of one rank."""
    return job.model_copy(update={"runtime": Runtime()})


def shown(job: Job, field: str) -> str | None:
    """A field of Slurm's record of `job`, the newest where it was submitted more than once; None where there is none."""
    answer = subprocess.run(["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True).stdout
    records = [line for line in answer.splitlines() if f" JobName={job_name(job)} " in line]
    return records[-1].partition(f"{field}=")[2].split()[0] if records else None


def started_again(job: Job, times: int) -> bool:
    return shown(job, "Restarts") == str(times) and shown(job, "JobState") == "RUNNING"


def checkpoints(job: Job) -> list[Path]:
    return list((job.out / SCRATCH / CHECKPOINTS).glob("step-*"))


def warn(job: Job) -> None:
    """What Slurm does when a time limit is near."""
    subprocess.run(["scancel", "--signal=USR1", "--batch", str(shown(job, "JobId"))], check=True)


@pytest.fixture(scope="module")
def undisturbed(cluster: Cluster, make_job: Callable[[], Job]) -> tuple[Job, list[str]]:
    """A job whose ranks were left in peace, and what was seen of Slurm's number for it: its flow was killed, and another came."""
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


def test_cancelled_and_warned_of_its_limit_it_ends_as_if_never(
    undisturbed: tuple[Job, list[str]], make_job: Callable[[], Job]
) -> None:
    whole, job = undisturbed[0], make_job()
    with opened(job) as launcher:
        running = Running(launcher, job)
        until(lambda: checkpoints(job))
    running.wait()
    assert isinstance(running.error, StageError) and "was cancelled" in str(running.error)
    assert until(lambda: shown(job, "JobState") == "CANCELLED") and not (job.out / RESULT).exists()
    left = {path.name for path in checkpoints(job)}

    with opened(job) as launcher:
        running = Running(launcher, job)
        until(lambda: {path.name for path in checkpoints(job)} - left)
        warn(job)
        running.wait()
    assert running.error is None and shown(job, "Restarts") == "1"
    (result,) = running.heard.results
    assert result.resumed_from_step is not None and result.resumed_from_step > 9
    for name in ("model.safetensors", METRICS):
        assert (job.out / name).read_bytes() == (whole.out / name).read_bytes()


RANK = """\
#!/bin/bash
# a rank that does what its file says, and leaves a line for each start
echo "$RANK of $WORLD_SIZE, ${!SLURM_@}" >> "$(dirname "$3")/starts"
source "$(dirname "$3")/behaviour"
"""


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Job, str], Path]:
    """Let the ranks of a job be a shell script; gives the file in which each start leaves a line."""
    program = tmp_path / "rank"
    program.write_text(RANK, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    def behave(job: Job, behaviour: str) -> Path:
        (job.out / SCRATCH / "behaviour").write_text(behaviour, encoding="utf-8")
        return job.out / SCRATCH / "starts"

    return behave


def test_neither_an_early_warning_nor_a_preemption_loses_a_job_that_gets_on(
    cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Path]
) -> None:
    job = alone(make_job())
    starts = rank(job, "sleep 100")  # a rank that does not listen yet: any signal ends it
    with opened(job, time="00:05:00") as launcher:
        running = Running(launcher, job)
        until(starts.exists)
        warn(job)
        until(lambda: started_again(job, 1) and len(starts.read_text().splitlines()) == 2)
        # a job of a partition that goes before takes the node: ranks hear SIGTERM, and have a grace time
        urgent = ["srun", "--partition=urgent", "--exclusive", "--quiet", "true"]
        subprocess.run(urgent, check=True, timeout=SECONDS)
        until(lambda: started_again(job, 2) and len(starts.read_text().splitlines()) == 3)
        assert running.error is None
        warn(job)
        running.wait()
    assert "two time limits have passed without a checkpoint" in str(running.error)
    assert starts.read_text().splitlines() == ["0 of 1, "] * 3


def test_a_rank_that_fails_ends_the_job_with_its_words(
    cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Path]
) -> None:
    job = make_job()
    starts = rank(
        job, 'trap "exit 143" TERM; [ "$RANK" = 0 ] || { echo "no such number"; kill -9 $$; }; sleep 100 & wait'
    )
    with opened(job) as launcher, pytest.raises(StageError, match="failed: no such number: srun: .* task 1: Killed"):
        launcher.run(job, Heard())
    assert sorted(starts.read_text().splitlines()) == ["0 of 2, ", "1 of 2, "]


def test_a_controller_that_does_not_answer_is_no_news(
    cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Path]
) -> None:
    job = alone(make_job())
    starts = rank(job, f"sleep 12; echo '{Result().model_dump_json()}' > '{job.out.parent}/result'")
    with opened(job) as launcher:
        running = Running(launcher, job)
        until(starts.exists)
        cluster.stop_controller()
        try:
            with pytest.raises(slurm_queue.Silent):
                slurm_queue.look("1")
            assert running.error is None
        finally:
            cluster.start_controller()
        os.replace(until(lambda: p if (p := job.out.parent / "result").exists() else None), job.out / RESULT)
        running.wait()
    assert running.error is None and len(running.heard.results) == 1


def test_what_slurm_refuses_is_told_in_its_words(cluster: Cluster, make_job: Callable[[], Job]) -> None:
    job = make_job()
    with opened(job, partition="nowhere") as launcher, pytest.raises(StageError, match="Slurm refused: .*nowhere"):
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
    head = script.partition("# Every signal")[0]
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
