"""A new objective is one new file: a recipe names it, a stage trains on it, and nothing else changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from tests.pipelines.training.small_recipe import RECIPE
from tests.steps import ROOT, library_of

FOCAL = '''\
"""The masked tokens, those that are hard to tell above all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class Focal(Objective, name="focal_masked_lm"):
    """Cross-entropy of the masked tokens, each times (1 − p)^γ of its own probability p (Lin et al. 2017, eq. 4)."""

    paper = "arXiv:1708.02002"
    needs_fields = frozenset({Field.MASKED_LABELS})
    needs_signals = frozenset({Signal.MASKED_LOGITS})

    gamma: float = 2.0
    """Exponent; 0 is plain cross-entropy."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        wanted = step.batch[Field.MASKED_LABELS][:, None]
        likely = step.signals[Signal.MASKED_LOGITS].log_softmax(-1).gather(1, wanted)
        return {"focal": -((1 - likely.exp()) ** self.gamma * likely).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"focal": len(batch[Field.MASKED_LABELS])}
'''


TRAIN = """
import json, sys
from pathlib import Path
import pipelines
from pipelines.lineage.results import METRICS
from pipelines.lineage.provenance import DataSource
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.steps import job_of, library_of, plan_of
folder, *tables = map(Path, sys.argv[1:])
assert Path(pipelines.__file__).is_relative_to(folder)
tables = {path.stem: path for path in tables}
sources = {name: DataSource(digest=name, path=str(path)) for name, path in tables.items()}
step = plan_of(library_of(folder, small=(folder / "small.yaml").read_text()), "small", sources, tiny=True).steps[0]
result = run(job_of(step, {}, tables, folder / "out"))
lines = read_metrics(folder / "out" / METRICS)
print(json.dumps([line["train/focal"] for line in lines if "train/focal" in line]))
"""
WITH_FOCAL = RECIPE.replace("[masked_lm, contrastive]", "[{name: focal_masked_lm, gamma: 1.5}, contrastive]")


def test_a_stage_trains_on_an_objective_that_is_one_file(tmp_path: Path, tables: dict[str, Path]) -> None:
    shutil.copytree(ROOT / "pipelines", tmp_path / "pipelines", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pipelines" / "parts" / "objectives" / "focal_masked_lm.py").write_text(FOCAL, encoding="utf-8")
    (tmp_path / "small.yaml").write_text(WITH_FOCAL, encoding="utf-8")
    command = [sys.executable, "-c", TRAIN, str(tmp_path), *map(str, tables.values())]
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    terms = json.loads(done.stdout.splitlines()[-1])
    # a token of 512 is told with the probability 1 / 512 at first: −log(1 / 512) = 6.2, and the factor is nearly one
    assert terms and all(5 < float(term) < 7.5 for term in terms)


def test_without_the_file_its_name_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="no objective is called 'focal_masked_lm'. Did you mean 'masked_lm'?"):
        library_of(tmp_path, small=WITH_FOCAL).load("small")
