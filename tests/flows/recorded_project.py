"""A project whose runs are recorded, and every kind of change after which a record is out of date."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pipelines.lineage.store import Store
from tasks.records.complete_runs import FOLDER

COMMAND = """
import sys
from flows.cli.app import app
try:
    app(sys.argv[1:], prog_name="cursus")
finally:
    print("planned:", "tasks.datasets.planning" in sys.modules, file=sys.stderr)
"""


class Project(NamedTuple):
    """A checkout in which everything is computed, and recorded as such."""

    root: Path
    environment: dict[str, str]
    packages: Path
    """A folder of installed distributions."""

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, *arguments], cwd=self.root, env=self.environment | variables, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, umask=0o022,
        )  # fmt: skip

    def run(self, *arguments: str, **variables: str) -> Answer:
        return answer_of(self.start("run", *arguments, **variables))

    @property
    def record(self) -> Path:
        """The latest record."""
        return max((self.root / ".cursus" / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime_ns)


class Answer(NamedTuple):
    status: int
    output: str
    messages: str
    planned: bool


def answer_of(process: subprocess.Popen[str]) -> Answer:
    output, messages = process.communicate(timeout=240)
    others = [line for line in messages.splitlines() if not line.startswith("planned: ")]
    return Answer(process.returncode, output, "\n".join(others), "planned: True" in messages)


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> Iterator[None]:
    """Change a file without a trace in its size or time of modification, as far as `change` keeps the size."""
    before, status = path.read_bytes(), path.stat()
    linked = status.st_nlink > 1
    if linked:  # the file of the first run, or DVC's, is another's
        path.unlink()
    path.chmod(0o644) if path.exists() else None
    path.write_bytes(change(before))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    yield
    path.write_bytes(before)


def write(path: Path) -> Iterator[None]:
    made = [folder for folder in (path.parent, *path.parent.parents) if not folder.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("new\n")
    yield
    path.unlink()
    for folder in made:
        folder.rmdir()


def rename(path: Path, other: Path) -> Iterator[None]:
    path.rename(other)
    yield
    other.rename(path)


def flipped(content: bytes) -> bytes:
    return bytes([content[0] ^ 1, *content[1:]])


def artifact_of(project: Project) -> Path:
    (step,) = [one for one in Store(project.root / "data" / "store").all() if one.stage == "general"]
    return project.root / "data" / "store" / step.fingerprint


CHANGES: dict[str, Callable[[Project], Iterator[None]]] = {
    "a byte of code": lambda one: rewrite(one.root / "pipelines" / "words.py", flipped),
    "a byte of a recipe": lambda one: rewrite(one.root / "recipes" / "regime.yaml", flipped),
    "a byte of params.yaml": lambda one: rewrite(one.root / "params.yaml", flipped),
    "a byte of dvc.yaml": lambda one: rewrite(one.root / "dvc.yaml", flipped),
    "a byte of dvc.lock": lambda one: rewrite(one.root / "dvc.lock", flipped),
    "a byte of the pin": lambda one: rewrite(one.root / "data" / "pins" / "small.json", flipped),
    "a byte of a source": lambda one: rewrite(one.root / "texts" / "domain.csv", flipped),
    "a byte of a table": lambda one: rewrite(one.root / "data" / "prepared" / "small" / "test.parquet", flipped),
    "a byte of an artifact": lambda one: rewrite(artifact_of(one) / "model.safetensors", flipped),
    "a byte of a record of provenance": lambda one: rewrite(artifact_of(one) / "provenance.json", flipped),
    "a new recipe": lambda one: write(one.root / "recipes" / "new.yaml"),
    "a new module": lambda one: write(one.root / "pipelines" / "parts" / "objectives" / "new.py"),
    "a part of the project's own": lambda one: write(one.root / "parts" / "objectives" / "new.py"),
    "anchors": lambda one: write(one.root / "anchors.yaml"),
    "a new source": lambda one: write(one.root / "texts" / "general" / "new.txt"),
    "a local setting of DVC": lambda one: write(one.root / ".dvc" / "config.local"),
    "a decision on a champion": lambda one: write(one.root / "data" / "store" / ".promotions.jsonl"),
    "a removed artifact": lambda one: rename(artifact_of(one), one.root / "elsewhere"),
    "a removed file of an artifact": lambda one: rename(artifact_of(one) / "config.json", one.root / "elsewhere"),
    "a removed table": lambda one: rename(one.root / "data" / "prepared" / "small" / "named", one.root / "elsewhere"),
    "a removed module": lambda one: rename(one.root / "flows" / "regime.py", one.root / "elsewhere"),
    "an upgraded package": lambda one: rename(
        one.packages / "example-1.0.dist-info", one.packages / "example-1.1.dist-info"
    ),
    "a package of another version in its place": lambda one: rewrite(
        one.packages / "example-1.0.dist-info" / "METADATA", lambda text: text.replace(b"1.0", b"1.1")
    ),
}
