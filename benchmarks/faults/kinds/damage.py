"""A flipped bit, or a truncated file, while nothing runs: in checkpoints, token shards, prepared data, artifacts.

The file keeps its modification time, as with silent disk corruption, so that checks of times and sizes do not detect
it.
"""

from __future__ import annotations

import os
import re
import shutil
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from benchmarks.faults.attempt import Ending
from benchmarks.faults.fault import Fault, Strike
from benchmarks.faults.judge import Snapshot
from benchmarks.faults.kinds.kills import TRAINING
from benchmarks.faults.regime import Checkout
from pipelines.corpora.shards.folders import table_files
from pipelines.corpora.steps.step import prepared, table_path
from pipelines.lineage.provenance import RECORD

HOW = ("flipped", "flipped", "cut", "emptied")
_FOLDER = re.compile(r"delete (?:the (?:folder|file) )?(\S+)")


def damage(path: Path, random: Random) -> str:
    """Damage a file like a failing disk; returns a description."""
    how = random.choice(HOW)
    with _unnoticed(path):
        if how == "flipped":
            content = bytearray(path.read_bytes())
            content[at := random.randrange(len(content))] ^= 1 << random.randrange(8)
            # in place, so that hard links are damaged as well
            path.write_bytes(content)
            return f"a bit of byte {at} flipped"
        size = random.randrange(path.stat().st_size) if how == "cut" else 0
        os.truncate(path, size)
        return f"cut to {size} bytes"


@contextmanager
def _unnoticed(path: Path) -> Iterator[None]:
    stat = path.stat()
    os.chmod(path, 0o644)
    yield
    os.chmod(path, stat.st_mode)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


class Damage(Fault):
    """Run a checkout until there are files to damage, damage one, and run again."""

    def strike(self, checkout: Checkout, random: Random) -> Strike | None:
        self.prepare(checkout, random)
        files = self.files(checkout)
        if not files:
            return None
        path = random.choice(files)
        finished = Snapshot.of(checkout.store)
        self.unfinished(path, checkout, finished)
        how = damage(path, random)
        ending = checkout.run()
        where = path.relative_to(checkout.folder).as_posix()
        return Strike(f"{re.sub('[0-9a-f]{24,}', '…', where)}: {how}", ending, finished)

    @abstractmethod
    def prepare(self, checkout: Checkout, random: Random) -> None:
        """Run the checkout until there are files to damage."""

    @abstractmethod
    def files(self, checkout: Checkout) -> list[Path]:
        """Files that may be damaged."""

    def unfinished(self, path: Path, checkout: Checkout, finished: Snapshot) -> None:
        """Remove from `finished` the work that has to be repeated after the damage."""

    def fix(self, checkout: Checkout, ending: Ending) -> None:
        match = _FOLDER.search(ending.error or "")
        if match is not None:
            path = Path(match[1].rstrip(",.;"))
            if path.is_relative_to(checkout.folder):
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


class DamagedCheckpoint(Damage):
    name = "damaged_checkpoint"
    description = "a bit flipped or a file truncated in the checkpoints of a killed stage"
    cases = 10

    def prepare(self, checkout: Checkout, random: Random) -> None:
        attempt = checkout.start()
        stage = random.choice(["general", "classify"])

        def ready() -> bool:
            works = [path.parents[2] for path in checkout.store.root.glob(".work/*/scratch/checkpoints/step-*.ckpt")]
            published = len(list(checkout.store.root.glob(f"[0-9a-f]*/{RECORD}")))
            return bool(works) and (stage == "general" or published > 0)

        if attempt.watch(ready):
            for process in attempt.find(TRAINING):
                attempt.kill(process)
        attempt.ended()

    def files(self, checkout: Checkout) -> list[Path]:
        works = (checkout.store.root / ".work").glob("[0-9a-f]*")
        return sorted(path for work in works for path in work.rglob("*") if path.is_file() and path.stat().st_size)

    def unfinished(self, path: Path, checkout: Checkout, finished: Snapshot) -> None:
        finished.forget(path.relative_to(checkout.store.root / ".work").parts[0])


class DamagedTokens(Damage):
    name = "damaged_tokens"
    description = "a bit flipped or a file truncated in a tokenised corpus or the compiled kernels"
    cases = 10

    def prepare(self, checkout: Checkout, random: Random) -> None:
        checkout.start("run", "faults", "--threads", "1", "--until", "general").ended()
        for record in checkout.store.root.glob(f"[0-9a-f]*/{RECORD}"):
            shutil.rmtree(record.parent)  # so that its tokens are read again

    def files(self, checkout: Checkout) -> list[Path]:
        return sorted(path for path in checkout.store.tokens.glob("[0-9a-f]*/*") if path.is_file())


class DamagedData(Damage):
    name = "damaged_data"
    description = "a bit flipped or a file truncated in a prepared table, before training"
    cases = 10

    def prepare(self, checkout: Checkout, random: Random) -> None:
        pass

    def files(self, checkout: Checkout) -> list[Path]:
        home = prepared("small", checkout.folder)
        return [
            file
            for name in ("general", "task_text", "train", "validation", "test")
            for file in table_files(table_path(home, name))
        ]


class DamagedArtifact(Damage):
    name = "damaged_artifact"
    description = "a bit flipped or a file truncated in a published artifact, including its record"
    cases = 10

    def prepare(self, checkout: Checkout, random: Random) -> None:
        checkout.run()

    def files(self, checkout: Checkout) -> list[Path]:
        return sorted(path for path in checkout.store.root.glob("[0-9a-f]*/*") if path.is_file())

    def unfinished(self, path: Path, checkout: Checkout, finished: Snapshot) -> None:
        finished.forget(path.parent.name)
