"""The benchmark of architectures has a row of each, and both sides of a row learn the same thing."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from benchmarks.architectures import Architectures, compared, labels_of, planned, title, write_rows
from benchmarks.harness.benchmark import Setting
from benchmarks.harness.paced import Paces
from benchmarks.harness.record import Turn
from benchmarks.harness.stages import tables
from benchmarks.peers.plain_loop import read_rows
from benchmarks.trained_networks import COUNTED, ROWS
from pipelines.components import discover
from pipelines.models.opening import open_tokenizer
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones import Backbone
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.objectives import TrainingStep
from pipelines.training.assembly.assemble import assemble
from pipelines.training.loop.inputs import batches_of
from pipelines.vocabulary import Field


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(quick=True, threads=1, work=tmp_path)


def test_every_architecture_and_backbone_that_trains_by_gradients_has_a_row() -> None:
    discover("pipelines.parts.backbones")
    known = {one.name for one in Architecture.all()} | {*Backbone.members} - {Transformer.name}
    assert set(ROWS) | {*COUNTED} == known and not set(ROWS) & {*COUNTED}
    assert [goal.figure for goal in Architectures.goals] == [title(name) for name in ROWS]


def test_every_row_is_a_recipe_of_its_network(setting: Setting) -> None:
    text = tables(setting)
    for name, row in ROWS.items():
        stage = planned(setting, name, row, text).stage("train")
        assert stage.backbone is not None and name in stage.backbone.label.split()


@pytest.mark.parametrize("name", ["bert", "bart", "gpt2", "xlnet"])
def test_a_plain_loop_s_loss_is_that_of_the_stage(name: str, setting: Setting) -> None:
    stages = planned(setting, name, ROWS[name], tables(setting))
    initial = stages.make("initial")
    _, job = stages.loop("train", 1)
    (arguments,) = read_rows(write_rows(job, initial, 1, stages.folder / "rows.npz"))
    tokenizer, stage = open_tokenizer(initial), job.stage
    assert stage.head is not None
    network = assemble(stage, initial, tokenizer, {"": None}, "cpu").eval()
    (batches,) = batches_of(job, {"": None}, tokenizer).lines
    batch = {Field(key): torch.from_numpy(value) for key, value in batches.batch(0).items()}
    (objective,) = stage.objective
    reference = getattr(transformers, str(ROWS[name].network)).from_pretrained(initial).eval()
    with torch.no_grad():
        signals = stage.head.signals(network, batch, objective.needs_signals)
        step = TrainingStep(batch, signals, network, lambda *_: {})
        (loss,) = objective.loss(step).values()
        assert float(loss) == pytest.approx(float(reference(**arguments).loss), rel=1e-5)


def test_labels_are_the_tokens_that_are_predicted() -> None:
    ids = torch.arange(6).view(2, 3).numpy()
    masked = {
        Field.INPUT_IDS: ids,
        Field.MASKED_POSITIONS: torch.tensor([1, 5]).numpy(),
        Field.MASKED_LABELS: torch.tensor([7, 8]).numpy(),
    }
    assert labels_of(masked).tolist() == [[-100, 7, -100], [-100, -100, 8]]
    assert labels_of({Field.INPUT_IDS: ids}) is ids
    assert labels_of({Field.INPUT_IDS: ids, Field.TARGET_IDS: ids[:, :1]}).shape == (2, 1)


def test_a_row_is_compared_with_the_faster_loop() -> None:
    speeds = {"cursus": 30.0, "a plain loop": 10.0, "a plain loop, compiled": 20.0}
    turns = {name: (Turn(units=units, seconds=1, cpu=1),) for name, units in speeds.items()}
    (figure,) = compared("bert", Paces(turns, {}, {}, {}))
    assert (figure.value, figure.against) == (1.5, "a plain loop, compiled")
    del turns["a plain loop, compiled"]
    (figure,) = compared("bert", Paces(turns, {"a plain loop, compiled": "no compiler"}, {}, {}))
    assert (figure.value, figure.against) == (3, "a plain loop")
    assert compared("bert", Paces({"cursus": turns["cursus"]}, {}, {}, {})) == []
