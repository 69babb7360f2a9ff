"""`cursus systems`: the list, one system in full, and a mistake in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli.app import app
from pipelines.recipe.systems import known_systems
from tasks.records.plans import read_plans
from tests.steps import RECIPES, ROOT


@pytest.fixture(autouse=True)
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    """The project is this checkout."""
    monkeypatch.setenv("CURSUS_ROOT", str(ROOT))


def output(*arguments: str, status: int = 0) -> str:
    shown = CliRunner().invoke(app, ["systems", *arguments])
    assert shown.exit_code == status, shown.output
    return shown.output


def test_all_systems_are_listed_with_recipe_and_verdict() -> None:
    lines = {words[0]: line for line in output().splitlines() if line.startswith("  ") and (words := line.split())}
    assert set(lines) == set(known_systems(RECIPES))
    assert "ELECTRA: " in lines["electra"] and " electra " in lines["electra"][20:]
    assert {name for name, line in lines.items() if line.endswith("no recipe yet")} == set(read_plans(ROOT).rows)


def test_one_system_is_shown_in_full() -> None:
    shown = output("electra")
    assert all(part in shown for part in ("arXiv:2003.10555, 2020", "E. Transformers", "electra, stage classify"))
    assert "claim     electra/electra_against_bert: " in shown and "docs/claims.md" in shown
    assert "why       budget: 3 to 6 M tokens a stage" in shown
    planned, plan = next(iter(read_plans(ROOT).rows.items()))
    shown = output(planned)
    assert "no recipe yet" in shown and plan.axes[0] in shown.partition("plan")[2]


def test_an_unknown_system_is_one_sentence() -> None:
    shown = output("elektra", status=2)
    assert shown.startswith("error: there is no system 'elektra'") and "Did you mean 'electra'?" in shown
    assert len(shown.splitlines()) == 1


def test_a_project_without_a_list_says_which_file_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURSUS_ROOT", str(tmp_path))
    assert "no list of systems" in output(status=2)
