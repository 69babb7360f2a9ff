"""The benchmarks of lines and of channels compare what they say: their recipes are planned on their own tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import channels, lines
from benchmarks.harness.benchmark import Setting
from benchmarks.harness.record import Turn


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(quick=True, threads=1, work=tmp_path)


@pytest.mark.parametrize("case", lines.CASES, ids=lambda case: case.name)
def test_the_pair_is_the_two_stages(case: lines.Case, setting: Setting) -> None:
    stages = lines.planned(setting, case, "tiny", case.tables(setting))
    pair, first, second = (stages.stage(name) for name in lines.VARIANTS.values())
    assert [one.corpus for one in pair.lines.values()] == [first.corpus, second.corpus]
    heads = [first.head, second.head]
    assert [one.head or pair.head for one in pair.lines.values()] == heads and None not in heads
    assert first.optimizer == second.optimizer == pair.optimizer and first.budget == second.budget == pair.budget


def test_only_the_channel_differs(setting: Setting) -> None:
    stages = channels.planned(setting, "tiny", channels.pages(setting))
    plain = stages.stage("train")
    for channel in channels.CHANNELS:
        stage = stages.stage(channel)
        assert stage.backbone is not None and [one.name for one in stage.backbone.added_embeddings] == [channel]
        parts = {name: getattr(plain, name) for name in ("like", "annotations", "backbone")}
        assert stage.model_copy(update=parts) == plain


def test_two_stages_apart_did_the_work_of_both() -> None:
    first, second = Turn(units=4, seconds=2, cpu=1), Turn(units=4, seconds=6, cpu=3)
    assert lines.together([first], [second]) == (Turn(units=8, seconds=8, cpu=4),)
    assert lines.milliseconds("a step", lines.together([first], [second])).value == 1000


def test_every_goal_is_a_figure_of_its_benchmark() -> None:
    named = [lines.compared(case, size) for case in lines.CASES for size in lines.STEPS]
    assert [goal.figure for goal in lines.LinesCost.goals] == named
    assert [goal.figure for goal in channels.ChannelCost.goals] == [
        channels.compared(size, channel) for size in channels.STEPS for channel in channels.CHANNELS
    ]
