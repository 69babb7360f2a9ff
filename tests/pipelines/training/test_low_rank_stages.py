"""Embeddings of low rank train with the network, in its own stage and in later ones, and open from their folders."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from pipelines.lineage.provenance import DataSource
from pipelines.models.opening import open_model
from pipelines.recipe.job import Job
from tests.pipelines.training.computed_stages import computed
from tests.pipelines.training.small_recipe import CLASSIFY, masked_lm_stage, recipe_of

RECIPE = recipe_of(
    "ranked",
    "arXiv:1811.00641",
    masked_lm_stage(tokens=1024, positions=32, batch_tokens=512),
    CLASSIFY,
    """\
  ranked:
    like: classify
    kind: compress
    start: classify
    teacher: classify
    compression: [{name: select_layers, share: 0.5}, {name: low_rank_embeddings, share: 0.25}]
    objective: match_logits
  tuned: {like: classify, start: ranked}
  packed: {kind: compress, start: tuned, corpus: task, head: sequence_classification,
           compression: {name: group_quantization, bits: 8, groups: 8}, budget: {length: 32}}
""",
)
VECTORS, PROJECTION = (f"bert.embeddings.word_embeddings.{one}.weight" for one in ("vectors", "projection"))


@pytest.fixture(scope="module")
def jobs(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Job]:
    """Stage → the job that computed it."""
    return computed(tmp_path_factory.mktemp("ranked"), "ranked", RECIPE, tables, sources)


def weights(job: Job) -> dict[str, torch.Tensor]:
    return load_file(job.out / "model.safetensors")


def test_both_halves_train_in_their_stage_and_later(jobs: dict[str, Job]) -> None:
    ranked, tuned = weights(jobs["ranked"]), weights(jobs["tuned"])
    size, width = weights(jobs["classify"])["bert.embeddings.word_embeddings.weight"].shape
    assert ranked[VECTORS].shape == (size, width // 4) and ranked[PROJECTION].shape == (width, width // 4)
    assert not torch.equal(ranked[VECTORS], tuned[VECTORS]) and not torch.equal(ranked[PROJECTION], tuned[PROJECTION])
    # what it starts from has orthogonal columns, which training leaves
    gram = ranked[PROJECTION].T @ ranked[PROJECTION]
    assert not torch.allclose(gram, torch.eye(width // 4), atol=1e-6)


def test_a_folder_opens_and_packs(jobs: dict[str, Job]) -> None:
    record = open_model(jobs["packed"].out, "cpu").record
    assert [one.compression.name for one in record.changes] == ["low_rank_embeddings", "group_quantization"]
    assert record.changes[0].modules == {"embeddings.word_embeddings": {"rank": 8}}
    network = open_model(jobs["tuned"].out, "cpu").network
    stored = weights(jobs["tuned"])
    ids = torch.arange(20)
    table = network.get_input_embeddings()
    torch.testing.assert_close(table(ids), stored[VECTORS][:20] @ stored[PROJECTION].T)
