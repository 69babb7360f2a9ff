"""A student learns to attend as its teacher does, through the kernels that compute attention."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.recipe.job import Runtime
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.pipelines.training.small_recipe import masked_lm_stage, recipe_of
from tests.steps import job_of, library_of, plan_of

RECIPE = recipe_of(
    "attention",
    "arXiv:1909.10351",
    masked_lm_stage("teacher", tokens=2048, positions=32, batch_tokens=512, dropout="    dropout: 0.0\n"),
    """\
  same:
    like: teacher
    kind: adapt_domain
    corpus: domain
    start: teacher
    teacher: teacher
    layout: packed_documents
    objective: [{name: match_attention, compare: distributions}, masked_lm]
    budget: {tokens: 4096}
  student:
    like: teacher
    teacher: teacher
    backbone:
      name: transformer
      positions: 32
      dims: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 32}
    objective: match_attention
    budget: {tokens: 10240}
""",
)
NARROW = """  narrow:
    like: student
    backbone:
      name: transformer
      positions: 32
      dims: {hidden_size: 16, num_hidden_layers: 1, num_attention_heads: 4, intermediate_size: 32}
    budget: {tokens: 1024}
"""


def test_another_number_of_heads_is_refused_when_the_recipe_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="the student has 4 attention heads and its teacher 2"):
        library_of(tmp_path, attention=RECIPE + NARROW).load("attention")


def test_the_same_network_has_nothing_to_learn_and_a_smaller_one_learns(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    plan = plan_of(library_of(tmp_path, attention=RECIPE), "attention", sources)
    folders = {step.fingerprint: tmp_path / step.name for step in plan.steps}
    losses = {}
    for step in plan.steps:
        job = job_of(step, folders, tables, tmp_path / step.name, Runtime(log_every=1))
        run(job)
        term = "train/match_attention"
        losses[step.name] = [line[term] for line in read_metrics(job.out / METRICS) if term in line]
    assert not losses["teacher"] and losses["same"][0] == pytest.approx(0, abs=1e-6) and losses["same"][-1] > 1e-6
    assert losses["student"][-1] < 0.8 * losses["student"][0]
