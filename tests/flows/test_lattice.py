"""`cursus lattice` as a user runs it: refused before anything is prepared, planned, computed once, shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.flows.conftest import FirstRun, command_line, users_shell, write_prepared

SHORT = """
like: regime
stages:
  domain: null
  task: null
  from_domain: null
  from_general: null
  small: null
  int8: null
  classify: {like: scratch, start: general}
  scratch:
    kind: finetune
    start: {untrained: general}
    corpus: task
    head: sequence_classification
    objective: cross_entropy
    strategy: full
    budget: {epochs: 1, length: 64}
  report: {kind: evaluate, start: [classify], corpus: task, suite: [baselines, scores]}
"""


def test_a_lattice_is_computed_once_and_has_a_page(
    first: FirstRun, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, server: dict[str, str]
) -> None:
    # its own: other tests count what they find
    checkout, recipe = write_prepared(tmp_path, first, tmp_path_factory), "short"
    (checkout / "recipes" / f"{recipe}.yaml").write_text(SHORT, encoding="utf-8")
    cursus = command_line(checkout, users_shell(checkout) | server)
    refused = cursus("lattice", recipe, "--smoke", "--seeds", "1")
    assert refused.returncode == 2 and "at least two seeds" in refused.stderr + refused.stdout
    planned = cursus("lattice", recipe, "--smoke", "--seeds", "2", "--dry-run")
    assert "test examples with 2 seeds per side detect a difference" in planned.stdout
    assert "12 of 12 steps to compute" in planned.stdout
    done = cursus("lattice", recipe, "--smoke", "--seeds", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    (page,) = (checkout / "reports").glob("*/lattice.html")
    assert str(page) in done.stdout
    shown = page.read_text(encoding="utf-8")
    assert "the stage general" in shown and "from scratch" in shown
    execution = json.loads((page.parent / "execution.json").read_text(encoding="utf-8"))
    assert execution["measurement"], "none of its models is one to predict with"
    assert [step["stage"] for step in execution["steps"]].count("classify") == 2
    again = cursus("lattice", recipe, "--smoke", "--seeds", "2")
    assert again.returncode == 0 and "steps to compute" not in again.stderr
    assert not (checkout / "docs" / "lattices.md").exists(), "a smoke run measures nothing"
