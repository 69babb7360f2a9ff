"""Training as jobs of a real Slurm: stopped, queued again, left by its flow, refused."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import RecipeError, StageError
from pipelines.job import METRICS, SCRATCH, Job, Result, Runtime
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
        self.errors: list[Exception] = []
        self._launcher = launcher
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._launcher.run(self.job, self.heard)
        except Exception as error:
            self.errors.append(error)

    def wait(self) -> None:
        """Until the launcher has returned, or raised one of `errors`."""
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
    """Whether it has come back from the queue; it is hurried along, where Slurm lets a job wait that was queued again."""
    number = str(shown(job, "JobId"))
    subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], capture_output=True)
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


RANK = """\
#!{python} -S
# a rank that leaves a file for each start, and then does what it is told
import os, signal, sys, time
from pathlib import Path

folder, rank = Path(sys.argv[3]).parent, os.environ["RANK"]
slurm = [name for name in os.environ if name.startswith("SLURM_")]
(folder / f"start-{{rank}}-{{os.getpid()}}").write_text(f"{{rank}} of {{os.environ['WORLD_SIZE']}} {{slurm}}")

def leave(*_):
    time.sleep(1)
    (folder / f"left-{{rank}}").touch()
    sys.exit(143)

exec((folder / "behaviour.py").read_text())
"""
LISTEN, WAIT = "signal.signal(signal.SIGTERM, leave)", "time.sleep(100)"


@pytest.fixture
def rank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Job, str], Callable[[], list[str]]]:
    """Let the ranks of a job behave as told, without torch; gives a view of what they said when they started."""
    program = tmp_path / "rank"
    program.write_text(RANK.format(python=sys.executable), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))

    def behave(job: Job, behaviour: str) -> Callable[[], list[str]]:
        scratch = job.out / SCRATCH
        (scratch / "behaviour.py").write_text(behaviour, encoding="utf-8")
        return lambda: sorted(path.read_text() for path in scratch.glob("start-*"))

    return behave


def test_neither_an_early_warning_nor_a_preemption_loses_a_job_that_gets_on(
    cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Callable[[], list[str]]]
) -> None:
    job = alone(make_job())
    starts = rank(job, WAIT)  # it does not listen yet: any signal ends it
    with opened(job, time="00:05:00") as launcher:
        running = Running(launcher, job)
        until(starts)
        warn(job)
        until(lambda: started_again(job, 1) and len(starts()) == 2)
        # a job of a partition that goes before takes the node: ranks hear SIGTERM, and have a grace time
        urgent = ["srun", "--partition=urgent", "--exclusive", "--quiet", "true"]
        subprocess.run(urgent, check=True, timeout=SECONDS)
        until(lambda: started_again(job, 2) and len(starts()) == 3)
        assert not running.errors
        warn(job)
        running.wait()
    assert "two time limits have passed without a checkpoint" in str(running.errors[0])
    assert starts() == ["0 of 1 []"] * 3


def test_a_rank_that_fails_ends_the_job_with_its_words(
    cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Callable[[], list[str]]]
) -> None:
    job = make_job()
    starts = rank(
        job, f"{LISTEN}\nif rank == '1': print('no such number', flush=True); os.kill(os.getpid(), 9)\n{WAIT}"
    )
    with opened(job) as launcher, pytest.raises(StageError, match="failed: no such number: srun: .* task 1: Killed"):
        launcher.run(job, Heard())
    assert starts() == ["0 of 2 []", "1 of 2 []"]


def test_a_silent_controller_is_no_news_and_a_cancelled_job_ends_in_order(
    cluster: Cluster, make_job: Callable[[], Job], rank: Callable[[Job, str], Callable[[], list[str]]]
) -> None:
    job = make_job()
    scratch = job.out / SCRATCH
    starts = rank(job, f"{LISTEN}\n(folder / f'listens-{{rank}}').touch()\n{WAIT}")
    with opened(job) as launcher:
        running = Running(launcher, job)
        until(lambda: len(list(scratch.glob("listens-*"))) == 2)
        cluster.stop_controller()
        try:
            with pytest.raises(slurm_queue.Silent):
                slurm_queue.look("1")
            time.sleep(2 * slurm.LOOK_SECONDS)  # it has been asked about meanwhile
            assert not running.errors
        finally:
            cluster.start_controller()
    running.wait()
    (error,) = running.errors
    assert isinstance(error, StageError) and "was cancelled" in str(error)
    assert sorted(path.name for path in scratch.glob("left-*")) == ["left-0", "left-1"] and len(starts()) == 2
    assert slurm_queue.find(job_name(job)) is None


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
