"""The script for a GPU, whole, on whatever is at hand: with only the packages that it says it needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.gpu import TRAINER, summary
from benchmarks.gpu_cases import CASES, step_flops
from benchmarks.harness.floor import Shape, flops
from tests.steps import ROOT

LACKING = """
import sys
from importlib.machinery import PathFinder

ABSENT = "prefect mlflow dvc great_expectations psutil datasets ruamel accelerate".split()
found = PathFinder.find_spec
PathFinder.find_spec = staticmethod(
    lambda name, *more: None if name.partition(".")[0] in ABSENT else found(name, *more)
)

if __name__ == "__main__":
    import benchmarks.gpu_cases
    sys.exit(benchmarks.gpu_cases.main(sys.argv[1:]))
"""
ALL = "import sys, benchmarks.gpu_cases; sys.exit(benchmarks.gpu_cases.main(sys.argv[1:]))"


@pytest.mark.parametrize("program", [LACKING, ALL], ids=["little installed", "beside the Trainer"])
def test_it_runs_and_says_what_it_does_not_prove(program: str, tmp_path: Path) -> None:
    if program is ALL:
        pytest.importorskip("accelerate", reason="transformers' Trainer needs it; pip install -e '.[bench]'")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-c", program, "--tiny", "--lengths", "128", "--out", str(tmp_path)]
    ended = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, ended.stderr
    record = json.loads((tmp_path / CASES).read_bytes())
    case = record["cases"]["128"]
    assert case["equal_loss"]["agrees"] and len(set(case["equal_loss"]["with"])) > 1
    assert case["tokens_a_second"]["ours"] > 0 and 0 < case["share_of_matmul"] < 2
    assert 0 <= case["data_share_of_step"] < 1 and case["padding_share"] < 0.1
    assert (case["ratio"] is None) == (program is LACKING)
    assert any("no CUDA device" in one for one in record["not_proven"])
    assert any("accelerate" in one for one in record["not_proven"]) == (program is LACKING)
    figures = {figure.name: figure.value for figure in summary(record).figures}
    assert figures["128 tokens: of the matmul"] == case["share_of_matmul"]
    assert figures.get(f"128 tokens: against {TRAINER}") == case["ratio"]


def test_the_floating_point_operations_of_a_step_are_those_of_its_products() -> None:
    """Where every row is one document, the formula is the sum over the products of the matmul floor."""
    shape = Shape(12, 768, 12, 3072, 30_528, 128, 512, 0.15)
    assert step_flops(shape, 128 * 512**2, round(0.15 * shape.tokens)) == flops(shape)
