"""A user's mistake is one line, exit code 2, told before anything is computed or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.conftest import Cursus

MISTAKES = {
    "recipe": (["run", "regmie"], ("there is no recipe 'regmie'", "Did you mean 'regime'?")),
    "dataset": (["run", "--data", "smal"], ("no dataset is called 'smal'", "Did you mean 'small'?", "params.yaml")),
    "variant": (["run", "--variant", "no-such"], ("there is no variant 'no-such'", "Known:", "regime.yaml")),
    "stage": (["run", "--until", "genral"], ("recipe regime has no stage 'genral'", "Did you mean 'general'?")),
    "claim": (["claim", "crf/entitys"], ("recipe crf has no claim 'entitys'", "Did you mean 'entities'?")),
    "data of a claim": (["claim", "crf/entities", "--data", "smal"], ("'smal'", "Did you mean 'small'?")),
    "schedule": (["schedule", "regime", "--cron", "0 2 * * *"], ("the servers do not run", "`cursus up`")),
    "data": (["data", "smal"], ("no dataset is called 'smal'", "Did you mean 'small'?")),
    "listing": (["recipes", "regmie"], ("Did you mean 'regime'?",)),
    "model folder": (["predict", "--model", "flows", "a text"], ("flows", "missing")),
}


@pytest.mark.parametrize(("arguments", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_line(
    arguments: list[str], says: tuple[str, ...], cursus: Cursus, checkout: Path
) -> None:
    before = set((checkout / "data").rglob("*"))
    done = cursus(*arguments, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("imported:")]
    assert line.startswith("error: ") and all(part in line for part in says)
    assert "Traceback" not in done.stderr and "torch" not in done.stderr
    assert set((checkout / "data").rglob("*")) == before


def test_an_unknown_option_is_refused_and_help_teaches(cursus: Cursus) -> None:
    done = cursus("run", "--smke")
    assert done.returncode == 2 and "--smoke" in done.stderr
    shown = cursus("--help")
    assert shown.returncode == 0
    for word in ("run", "data", "lineage", "recipes", "predict", "up", "down"):
        assert word in shown.stdout
    assert "--dry-run" in cursus("run", "--help").stdout


def test_recipes_are_listed_and_shown(cursus: Cursus) -> None:
    listed = cursus("recipes")
    assert listed.returncode == 0 and "regime" in listed.stdout and "arXiv:2004.10964" in listed.stdout
    shown = cursus("recipes", "regime")
    assert all(word in shown.stdout for word in ("general", "adapt_domain", "classify", "report"))
