"""Several heads on one backbone over two ranks with sharded weights: the losses and the weights of one rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS, Result
from pipelines.recipe.job import Job, Runtime
from pipelines.training.ranks.run import run
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.lines_recipe import RECIPE
from tests.steps import job_of, library_of, plan_of


class Silent:
    """Hears nothing."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None: ...

    def finished(self, job: Job, result: Result) -> None: ...


@pytest.mark.parametrize("strategy", ["full", "{name: projected_attention, size: 8, heads: 2}"])
def test_sharded_weights_train_several_heads_as_whole_ones_do(
    strategy: str, sources: dict[str, DataSource], tables: dict[str, Path], forked: ForkedSession, tmp_path: Path
) -> None:
    """Dropout is off: each rank draws its own masks. Weights of which a rank holds half are saved whole."""
    recipe = RECIPE.replace("dropout: 0.1", "dropout: 0.0").replace("{epochs: 2,", "{epochs: 0.5,")
    recipe = recipe.replace("start: general\n    strategy: full", f"start: general\n    strategy: {strategy}")
    steps = {step.name: step for step in plan_of(library_of(tmp_path, lines=recipe), "lines", sources).steps}
    general = job_of(steps["general"], {}, tables, tmp_path / "general")
    run(general)
    folders = {steps["general"].fingerprint: general.out}
    one, two = (
        job_of(steps["share"], folders, tables, tmp_path / name, runtime)
        for name, runtime in (
            ("one", Runtime(log_every=3)),
            ("two", Runtime(log_every=3, devices=2, distribution="fsdp")),
        )
    )
    run(one)
    forked.run(two, Silent())
    logged = [[json.loads(line) for line in (job.out / METRICS).read_text().splitlines()] for job in (one, two)]
    assert {"train/topic/cross_entropy", "train/mlm/masked_lm"} <= {key for line in logged[0] for key in line}
    for mine, theirs in zip(*logged, strict=True):
        assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)
    whole, sharded = (load_file(job.out / "model.safetensors") for job in (one, two))
    assert whole.keys() == sharded.keys()
    for key, value in whole.items():
        torch.testing.assert_close(sharded[key], value, rtol=1e-3, atol=1e-4, msg=key)
