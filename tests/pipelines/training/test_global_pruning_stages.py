"""Zeros by one threshold for all matrices, from the stage that makes them to a file that stores what is left."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pipelines.errors import RecipeError
from pipelines.judging.evaluations.saved_weights import is_packed, parameters, served_weights
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.models.text_network import open_text_network
from pipelines.networks.onnx_graph import export_onnx, open_onnx
from pipelines.recipe.job import Job
from pipelines.training.ranks.run import run
from tests.pipelines.training.computed_stages import computed, matrices
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.pipelines.training.test_resume_of_shapes import interrupted

RECIPE = recipe_of(
    "together",
    "arXiv:1606.09274",
    masked_lm_stage(tokens=2048, positions=32, batch_tokens=512),
    """\
  together:
    kind: finetune
    start: general
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    compression: {name: global_magnitude_pruning, share: 0.7, gradually: 0.75, updates: 6}
    strategy: full
    dropout: 0.1
    optimizer: {lr: 1.0e-3, precision: 32-true}
    budget: {epochs: 4, batch_texts: 4, length: 32}
  tuned: {like: together, start: together, compression: [], budget: {epochs: 1}}
  stored: {kind: compress, start: tuned, corpus: task, head: sequence_classification, compression: sparse_storage,
           budget: {length: 32}}
""",
)


@pytest.fixture(scope="module")
def jobs(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """Stage → the job that computed it, without interruption."""
    return computed(tmp_path_factory.mktemp("together"), "together", RECIPE, tables, sources)


def test_the_zeros_are_shared_unevenly_and_are_those_of_all_that_follow(jobs: dict[str, Job]) -> None:
    together, tuned = (matrices(jobs[name].out) for name in ("together", "tuned"))
    zeros = {name: value == 0 for name, value in together.items()}
    assert sum(int(one.sum()) for one in zeros.values()) == round(0.7 * sum(one.numel() for one in zeros.values()))
    assert len({round(float(one.float().mean()), 2) for one in zeros.values()}) > 1
    assert all(torch.equal(tuned[name] == 0, one) for name, one in zeros.items())
    assert not any(torch.equal(tuned[name], value) for name, value in together.items()), "it trains"


@pytest.mark.parametrize("stage", ["together", "tuned"])
def test_an_interrupted_stage_ends_as_if_never_interrupted(stage: str, jobs: dict[str, Job], tmp_path: Path) -> None:
    job = jobs[stage].model_copy(update={"out": tmp_path / stage})
    interrupted(job, 5)
    assert run(job).resumed_from_step == 4
    for file in ("model.safetensors", METRICS):
        assert (job.out / file).read_bytes() == (jobs[stage].out / file).read_bytes(), file


def test_a_sparse_file_is_smaller_and_opens_to_exactly_the_same_weights(jobs: dict[str, Job]) -> None:
    tuned, stored = (open_model(jobs[name].out, "cpu") for name in ("tuned", "stored"))
    assert [one.compression.name for one in stored.record.changes] == ["global_magnitude_pruning", "sparse_storage"]
    for name in stored.record.changes[-1].modules:
        before, after = (one.network.base_model.get_submodule(name).weight for one in (tuned, stored))
        assert torch.equal(before, after), name
    sizes = {name: served_weights(jobs[name].out) for name in ("tuned", "stored")}
    layers = sum(4 * value.numel() for value in matrices(jobs["tuned"].out).values())
    saved = sizes["tuned"].stat().st_size - sizes["stored"].stat().st_size
    assert saved == pytest.approx((1 - 1 / 32 - 0.3) * layers, abs=3000), "headers take a few bytes more"
    assert is_packed(sizes["stored"]) and parameters(sizes["stored"]) == parameters(sizes["tuned"])


def test_it_is_exported_and_trained_no_further(jobs: dict[str, Job], tmp_path: Path) -> None:
    network = open_text_network(jobs["stored"].out)
    ids = torch.randint(5, 200, (2, 12), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    export_onnx(network, tmp_path / "model.onnx", 32, output="logits")
    (answers,) = open_onnx(tmp_path / "model.onnx", 1).run(
        None, {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
    )
    with torch.no_grad():
        expected = open_text_network(jobs["tuned"].out)(ids, mask)
    torch.testing.assert_close(torch.from_numpy(answers), expected, rtol=0, atol=1e-4)
    with pytest.raises(RecipeError, match="sparse_storage .* nothing trains or compresses them further"):
        run(jobs["tuned"].model_copy(update={"start": jobs["stored"].out, "out": tmp_path / "out"}))
