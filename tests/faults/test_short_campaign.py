"""The fault campaign in a minute: a few cases of different kinds, with fixed seeds, over launcher and store alone.

The whole one is `make faults`; what it found is docs/reliability.md.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from benchmarks.faults.attempt import Attempt, Ending
from benchmarks.faults.judge import Held, Made, Snapshot, lost, made_in
from benchmarks.faults.kinds.damage import damage
from benchmarks.faults.kinds.kills import TRAINING
from pipelines.lineage.results import COMPILED
from pipelines.lineage.store import Store
from pipelines.lineage.upkeep import flaws
from tests.pipelines.training.small_recipe import RECIPE
from tests.shared_folders import share_compiled
from tests.small_corpus import write_tables
from tests.steps import ROOT

FASTER = {"budget: {tokens: 204800": "budget: {tokens: 61440", "epochs: 60": "epochs: 8"}
"""60, 48 and a few optimizer steps."""


@dataclass
class Place:
    """A folder where the steps run."""

    folder: Path
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def store(self) -> Store:
        return Store(self.folder / "data" / "store")

    def start(self) -> Attempt:
        self.folder.mkdir(exist_ok=True)
        share_compiled(self.store.tokens / COMPILED)
        command = [sys.executable, "-m", "tests.faults.steps_of_a_store", str(self.folder)]
        mark = ("CURSUS_ROOT", str(self.folder))
        environment = {**os.environ, **dict([mark]), "PYTHONPATH": str(ROOT)}
        return Attempt(command, ROOT, environment, mark, self.folder / "said.txt")

    def run(self) -> Ending:
        return self.start().ended()

    def killed(self, word: str, stage: int, checkpoints: int) -> Ending:
        """Run until the `stage`th stage has so many checkpoints, then SIGKILL what has `word` in its command line."""
        attempt = self.start()

        def ready() -> bool:
            kept = list(self.store.root.glob(".work/*/scratch/checkpoints/step-*.ckpt"))
            return len(list(self.store.all())) == stage and len(kept) >= checkpoints

        assert attempt.watch(ready), attempt.ended().output
        attempt.kill(attempt.find(word)[0])
        self.snapshots.append(Snapshot.of(self.store))
        return attempt.ended(killed=word != TRAINING)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("campaign")
    (home / "tables").mkdir()
    (home / "recipes").mkdir()
    write_tables(home / "tables")
    text = RECIPE
    for slow, fast in FASTER.items():
        assert slow in text
        text = text.replace(slow, fast)
    (home / "recipes" / "small.yaml").write_text(text)
    return home


@pytest.fixture(scope="module")
def undisturbed(home: Path) -> dict[str, Made]:
    place = Place(home / "undisturbed")
    ending = place.run()
    assert ending.success, ending.output
    return made_in(place.store)


def test_killed_damaged_and_killed_again_it_ends_as_if_nothing_had_happened(
    home: Path, undisturbed: dict[str, Made]
) -> None:
    place, random = Place(home / "disturbed"), Random(5)
    place.killed("steps_of_a_store", stage=0, checkpoints=2)
    # the newest checkpoint, and the tokens it was trained on: both are read again, and noticed
    newest = max(place.store.root.glob(".work/*/scratch/checkpoints/step-*.ckpt"))
    damage(newest, random)
    place.snapshots[-1].forget(newest.parents[2].name)
    damage(next(place.store.tokens.glob("[0-9a-f]*/tokens.bin")), random)
    ending = place.killed(TRAINING, stage=1, checkpoints=1)
    assert ending.clear and "killed by SIGKILL" in ending.output, ending.output
    ending = place.run()
    assert ending.success, ending.output
    assert made_in(place.store) == undisturbed
    assert [lost(one, place.snapshots[n + 1 :], place.store) for n, one in enumerate(place.snapshots)] == [[], []]
    assert list(flaws(place.store)) == []


def test_a_damaged_artifact_is_refused_by_name_before_anything_is_computed(
    home: Path, undisturbed: dict[str, Made]
) -> None:
    place = Place(home / "damaged")
    shutil.copytree(home / "undisturbed", place.folder)
    last = next(name for name, one in undisturbed.items() if one.label == "small@0")
    damage(place.store.root / last / "model.safetensors", Random(5))
    ending = place.run()
    assert ending.status == 2 and ending.clear, ending.output
    asked = re.search(r"delete the folder (\S+) and run again", ending.output)
    assert asked is not None and asked[1] == str(place.store.root / last), ending.output


def test_a_judge_that_sees_nothing_would_be_no_judge(home: Path, undisturbed: dict[str, Made]) -> None:
    place = Place(home / "judged")
    shutil.copytree(home / "undisturbed", place.folder)
    before = Snapshot.of(place.store)
    name = next(iter(undisturbed))
    record = place.store.root / name / "provenance.json"
    content = record.read_bytes()
    record.unlink()
    record.write_bytes(content)
    (told,) = lost(before, [], place.store)
    assert told.endswith("was published and was computed again")
    before.checkpoints[name] = 9
    assert len(lost(before, [], place.store)) == 2
    metrics = place.store.root / name / "metrics.jsonl"
    before.logs[name] = Held(metrics)
    assert len(lost(before, [], place.store)) == 1, "its process was never interrupted"
    content = metrics.read_bytes()
    metrics.unlink()
    metrics.write_bytes(content)
    assert len(lost(before, [], place.store)) == 2, "it was begun anew"
