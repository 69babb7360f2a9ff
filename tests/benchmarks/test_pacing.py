"""Loops train in their turns and stand still between them; a stage goes the way of every rank."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from benchmarks import loop_overhead
from benchmarks.harness.benchmark import Setting
from benchmarks.harness.paced import Loop, LoopFailed, Paced, pace
from benchmarks.harness.stages import Stages, tables
from tasks.launchers.environment import training_environment


def loop(folder: Path, name: str, steps: int, fails: str = "") -> Loop:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"steps": steps, "fails": fails}))
    return Loop("tests.benchmarks.loops", path, units=10)


def test_a_loop_stands_still_between_its_turns(tmp_path: Path) -> None:
    with Paced(loop(tmp_path, "one", 1000), tmp_path / "log") as process:
        process.ready()
        count = tmp_path / "one.count"
        assert not count.exists(), "its first step waits for the first turn"
        turn = process.turn(seconds=0, steps=7)
        assert turn.units == 70 and turn.seconds > 0
        before = count.read_text()
        time.sleep(0.2)
        assert count.read_text() == before == "6"
        assert process.turn(seconds=0, steps=3).units == 30


def test_a_loop_that_ends_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    loops = {"good": loop(tmp_path, "good", 1000), "bad": loop(tmp_path, "bad", 1, fails="no compiler is installed")}
    paces = pace(loops, tmp_path, rounds=2, seconds=0, warm=2)
    assert list(paces.turns) == ["good"] and len(paces.turns["good"]) == 2
    assert paces.notes("tiny: ") == ["tiny: bad did not run: RuntimeError: no compiler is installed"]
    with Paced(loop(tmp_path, "short", 3), tmp_path / "log") as process:
        process.ready()
        with pytest.raises(LoopFailed, match="ended prematurely"):
            process.turn(seconds=0, steps=4)


def test_a_loop_is_let_train_to_its_end(tmp_path: Path) -> None:
    with Paced(loop(tmp_path, "good", 5), tmp_path / "log") as process:
        process.ready()
        process.finish()
        assert (tmp_path / "good.count").read_text() == "4"
    with Paced(loop(tmp_path, "bad", 5, fails="no compiler is installed"), tmp_path / "log") as process:
        process.ready()
        with pytest.raises(LoopFailed, match="no compiler is installed"):
            process.finish()


def test_a_stage_and_a_bare_loop_over_it_take_turns(tmp_path: Path) -> None:
    setting = Setting(quick=True, threads=1, work=tmp_path)
    stages = Stages(setting, "overhead", loop_overhead.RECIPE, tables(setting))
    stages.make("initial")
    ours, job = stages.loop("train", 1)
    bare = Loop("benchmarks.peers.bare_loop", ours.argument, 1, training_environment())
    paces = pace({"ours": ours, "bare": bare}, stages.folder, rounds=2, seconds=0, warm=1, steps=3)
    assert {name: [turn.units for turn in taken] for name, taken in paces.turns.items()} == {
        "ours": [3, 3],
        "bare": [3, 3],
    }, paces.failed
    assert not (job.out / "result.json").exists()
