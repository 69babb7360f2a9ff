"""Weights that are pruned stay zero while others train: in this stage, after an interruption, and in later stages."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS, SCRATCH
from pipelines.models.opening import open_model
from pipelines.recipe.job import Job
from pipelines.training.checkpoints.best_weights import FILE
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.pipelines.training.computed_stages import computed, matrices
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.pipelines.training.test_resume_of_shapes import interrupted

RECIPE = recipe_of(
    "sparse",
    "arXiv:2002.08307",
    masked_lm_stage(tokens=2048, positions=32, batch_tokens=512),
    """\
  narrow:
    like: general
    kind: adapt_domain
    start: general
    corpus: domain
    compression: {name: feed_forward_widths, share: 0.75}
    budget: {tokens: 1024}
  sparse:
    kind: finetune
    start: narrow
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    compression: {name: magnitude_pruning, share: 0.6, gradually: 0.75, updates: 6}
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 4, batch_texts: 4, length: 32}
  tuned: {like: sparse, start: sparse, compression: [], budget: {epochs: 1}}
  sparser: {like: tuned, start: tuned, compression: {name: magnitude_pruning, share: 0.8}}
  packed: {kind: compress, start: sparser, corpus: task, head: sequence_classification,
           compression: {name: group_quantization, groups: 8}, budget: {length: 32}}
""",
)


@pytest.fixture(scope="module")
def jobs(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """Stage → the job that computed it, without interruption."""
    return computed(tmp_path_factory.mktemp("sparse"), "sparse", RECIPE, tables, sources)


def test_the_zeros_of_a_stage_are_those_of_all_that_follow(jobs: dict[str, Job]) -> None:
    sparse, tuned, sparser = (matrices(jobs[name].out) for name in ("sparse", "tuned", "sparser"))
    assert len(sparse) == 12 and sparse["bert.encoder.layer.0.intermediate.dense.weight"].shape == (48, 32)
    for name, value in sparse.items():
        zeros = value == 0
        assert int(zeros.sum()) == round(0.6 * value.numel()), name
        assert torch.equal(tuned[name] == 0, zeros) and not torch.equal(tuned[name], value), "it trains, and stays"
        more = sparser[name] == 0
        assert bool(more[zeros].all()) and int(more.sum()) == round(0.8 * value.numel())
    assert not any((value == 0).any() for value in matrices(jobs["narrow"].out).values())


def test_the_folders_open_with_what_was_done_to_them(jobs: dict[str, Job]) -> None:
    record = open_model(jobs["packed"].out, "cpu").record
    names = ["feed_forward_widths", "magnitude_pruning", "magnitude_pruning", "group_quantization"]
    assert [one.compression.name for one in record.changes] == names
    assert record.changes[1].modules["encoder.layer.0.output.dense"] == {"zeros": 0.6}, "the share, and no mask"
    pruned = open_model(jobs["sparser"].out, "cpu").network.base_model
    plain = AutoModel.from_pretrained(jobs["sparser"].out, intermediate_size=48, add_pooling_layer=False)
    assert all(torch.equal(value, pruned.state_dict()[name]) for name, value in plain.state_dict().items())


def test_weights_are_the_best_ones_only_with_all_zeros(jobs: dict[str, Job], tmp_path: Path) -> None:
    """Three of four epochs are validated before the share is zero, the last one after."""
    validated = [line for line in read_metrics(jobs["sparse"].out / METRICS) if "validation/macro_f1" in line]
    job, (_, second, third, _) = jobs["sparse"], [int(line["step"]) for line in validated]
    early, late = (job.model_copy(update={"out": tmp_path / name}) for name in ("early", "late"))
    interrupted(early, second + 2)
    assert not (early.out / SCRATCH / FILE).exists()
    interrupted(late, third + 2)
    best = load_file(late.out / SCRATCH / FILE)["bert.encoder.layer.1.output.dense.weight"]
    assert int((best == 0).sum()) == round(0.6 * best.numel())


@pytest.mark.parametrize(("stage", "step"), [("sparse", 5), ("tuned", 5)])
def test_an_interrupted_stage_ends_as_if_never_interrupted(
    stage: str, step: int, jobs: dict[str, Job], tmp_path: Path
) -> None:
    job = jobs[stage].model_copy(update={"out": tmp_path / stage})
    interrupted(job, step)
    assert run(job).resumed_from_step == 4
    for file in ("model.safetensors", METRICS):
        assert (job.out / file).read_bytes() == (jobs[stage].out / file).read_bytes(), file
