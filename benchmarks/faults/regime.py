"""The small regimes that are disturbed, in a separate checkout: plain text → fine-tune → compress → evaluate, and a
recipe each of lines, channels, features and counted models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.checkouts import COPIED, ROOT
from benchmarks.faults.attempt import Attempt, Ending, marked
from benchmarks.faults.code import RECIPES, code
from benchmarks.faults.judge import Made, made_in, registered_models
from pipelines.lineage.store import Store
from tasks.servers import processes
from tests.pipelines.corpora.small_dataset import documents, write_jsonl, write_small_dataset

RECIPE, FIRST = "faults", "general"
"""The usual recipe, and its first stage."""
DATA = {"features": ("--data", "tagged")}
"""Recipe → options of its runs, where it does not read the default dataset."""
SETTINGS = "default_dataset: small\ntraining: {checkpoint_every: 20}\n"
MARK = "CURSUS_ROOT"
PATIENCE = 120.0
_SERVER = "campaign"
TEMPLATE = "template"
TAGGED = """\
  tagged:
    general: texts/general
    domain: [{path: texts/domain.csv, text: body}]
    task: {family: tagging, train: texts/tagged_train.jsonl, test: texts/tagged_test.jsonl}
"""
"""A dataset of tagged words, next to the default one."""


class RegimeFailed(Exception):
    """The undisturbed regime failed, so that no fault can be injected."""


@dataclass
class Checkout:
    """A checkout in which the regime runs."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict)
    """Environment variables of every attempt."""
    words: tuple[str, ...] = ("run", RECIPE, "--threads", "1")
    """The command line of the whole run."""
    cpu: float = 0.0
    """Seconds of processor time of an undisturbed run."""
    attempts: int = 0

    @property
    def store(self) -> Store:
        return Store(self.folder / "data" / "store")

    def start(self, *words: str, settings: Mapping[str, str] | None = None) -> Attempt:
        """Start `cursus run`, or the command in `words`."""
        self.attempts += 1
        command = [sys.executable, "-m", "flows.cli.app", *(words or self.words)]
        environment = {**environment_of(self.folder), **self.settings, **(settings or {})}
        output = self.folder.with_name(f"{self.folder.name}-{self.attempts}.txt")
        return Attempt(command, self.folder, environment, (MARK, str(self.folder)), output)

    def run(self, *words: str) -> Ending:
        """Run `cursus run`, or the command in `words`, to its end."""
        return self.start(*words).ended()

    def remove(self) -> None:
        """Kill its remaining processes, and delete it."""
        for process in marked((MARK, str(self.folder))):
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        for output in self.folder.parent.glob(f"{self.folder.name}-*.txt"):
            output.unlink()


@dataclass(frozen=True)
class Undisturbed:
    """Artifacts and cost of a run without a fault."""

    cpu: float
    """Seconds of processor time."""
    seconds: float
    made: dict[str, Made]
    registered: bool
    """Whether it registered a model."""


@dataclass
class Regime:
    """The template from which checkouts are copied, and the results of undisturbed runs."""

    work: Path
    server: str
    """API address of a permanent Prefect server, like that of `make up`."""
    known: dict[tuple[str, int], Undisturbed] = field(default_factory=dict)

    @property
    def template(self) -> Path:
        return self.work / TEMPLATE

    def checkout(self, name: str, recipe: str = RECIPE, standing: bool = True, devices: int = 1) -> Checkout:
        """A fresh copy that runs `recipe` and trains with `devices` ranks; with `standing`, its runs use the permanent
        server, else each starts a temporary one."""
        made = self._copy(name, recipe, devices)
        made.settings = {"PREFECT_API_URL": self.server} if standing else {}
        made.cpu = self.undisturbed(recipe, devices).cpu
        return made

    def undisturbed(self, recipe: str, devices: int) -> Undisturbed:
        """The result of `recipe` on `devices` ranks without a fault; cached in `work` for the same code. Raises
        RegimeFailed."""
        if (recipe, devices) not in self.known:
            path = self.work / f"undisturbed-{recipe}-{devices}-{code()[:16]}.json"
            if not path.exists():
                checkout = self._copy(f"undisturbed-{recipe}-{devices}", recipe, devices)
                checkout.settings = {"PREFECT_API_URL": self.server}
                attempt = checkout.start()
                ending = attempt.ended()
                if not ending.success:
                    raise RegimeFailed(ending.output)
                written = {name: asdict(one) for name, one in made_in(checkout.store).items()}
                path.write_text(
                    json.dumps(
                        {
                            "cpu": attempt.cpu(),
                            "seconds": ending.seconds,
                            "made": written,
                            "registered": registered_models(checkout.folder) > 0,
                        }
                    )
                )
                checkout.remove()
            recorded = json.loads(path.read_text())
            recorded["made"] = {name: Made(**one) for name, one in recorded["made"].items()}
            self.known[recipe, devices] = Undisturbed(**recorded)
        return self.known[recipe, devices]

    def _copy(self, name: str, recipe: str, devices: int) -> Checkout:
        folder = self.work / name
        Checkout(folder).remove()
        # hard links are preserved: DVC's outputs and its cache share files
        subprocess.run(["cp", "-a", str(self.template), str(folder)], check=True)
        words: tuple[str, ...] = ("run", recipe, "--threads", "1", *DATA.get(recipe, ()))
        if devices == 1:
            return Checkout(folder, words=words)
        params = folder / "params.yaml"
        params.write_text(params.read_text().replace("training: {", f"training: {{devices: {devices}, "))
        return Checkout(folder, words=(*words, "--until", FIRST))


@contextmanager
def regime(work: Path) -> Iterator[Regime]:
    """A template, created unless `work` holds one of the same code, and a permanent server."""
    work.mkdir(parents=True, exist_ok=True)
    _clear(work)
    prepared = Regime(work, f"http://127.0.0.1:{processes.free_port()}/api")
    server = _prefect(work, prepared.server)
    try:
        made_of = work / "template.txt"
        if not made_of.exists() or made_of.read_text() != code():
            _write_template(prepared.template)
            made_of.write_text(code())
        if not processes.wait_until_answers(f"{prepared.server}/health", server, seconds=PATIENCE):
            raise RegimeFailed(f"Prefect's server did not start; its log is {work / 'prefect.log'}")
        yield prepared
    finally:
        _clear(work)


def environment_of(folder: Path) -> dict[str, str]:
    """The environment of a user's shell in the checkout at `folder`, without the settings of the campaign's process."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "MLFLOW_", "CURSUS_"))
    }
    return {**inherited, MARK: str(folder), "PYTHONPATH": str(folder), "COLUMNS": "200"}


def _write_template(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in (*COPIED, ".dvc/config", ".dvcignore"):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)  # including compiled bytecode
        elif source.exists():
            shutil.copy2(source, target)
    write_small_dataset(folder)
    for name, (begin, end) in {"train": (0, 16), "test": (16, 24)}.items():
        write_jsonl(
            folder / "texts" / f"tagged_{name}.jsonl", (_tagged(text) for text in documents("email")[begin:end])
        )
    params = folder / "params.yaml"
    params.write_text(SETTINGS + params.read_text() + TAGGED, encoding="utf-8")
    for path in RECIPES.iterdir():
        shutil.copy(path, folder / "recipes")
    ready = (
        "from pathlib import Path; from tasks.servers.environment import prepare_environment; root = Path.cwd(); "
        "prepare_environment(root); from tasks.servers.tracking_database import migrate_tracking_store; "
        "migrate_tracking_store(root)"
    )
    python = [sys.executable]
    for command in (
        [*python, "-m", "flows.cli.app", "data"],
        [*python, "-m", "flows.cli.app", "data", "tagged"],
        [*python, "-c", ready],
        [*python, "-m", "prefect", "server", "database", "upgrade", "-y"],
    ):
        environment = {**environment_of(folder), "PREFECT_HOME": str(folder / ".cursus" / "prefect")}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RegimeFailed(done.stdout + done.stderr)


def _tagged(text: str) -> dict[str, list[str]]:
    """The first words of a text; those with a capital letter are tagged."""
    words = text.split()[:40]
    return {"tokens": words, "tags": ["B-NAME" if word[0].isupper() else "O" for word in words]}


def _prefect(work: Path, api: str) -> processes.Process:
    from tasks.environment import QUIET

    port = api.rpartition(":")[2].partition("/")[0]
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", port]
    environment = {**environment_of(work), **QUIET, "PREFECT_HOME": str(work / "prefect")}
    return processes.start(_SERVER, command, root=work, environment=environment, log=work / "prefect.log")


def _clear(work: Path) -> None:
    """Remove processes, mounts and folders of an earlier campaign, including a killed one."""
    processes.stop(processes.marked(_SERVER, work))
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for path in sorted((path for path in mounts if path.startswith(f"{work}/")), reverse=True):
        subprocess.run(["umount", "--lazy", path], check=False)
    for folder in work.iterdir():
        if folder.is_dir() and folder.name not in (TEMPLATE, "prefect"):
            Checkout(folder).remove()
