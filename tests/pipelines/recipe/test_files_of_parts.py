"""What a stage's parts are made of, and the files they read, are part of what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.plan import Step
from pipelines.recipe.problems import Setting
from pipelines.recipe.stage_parts import modules_of
from tests.pipelines.recipe.test_bad_recipes import GOOD
from tests.steps import library_of, plan_of

SUITE = "suite: {{name: robustness, attacks: [{{name: synonyms, lexicon: {}}}, letter_case]}}}}"
NAMES = ("general", "domain", "task_text", "train", "validation", "test")
DATA = {name: DataSource(digest=name, path=name) for name in NAMES}


def report(tmp_path: Path, lexicon: Path) -> Step:
    recipe = GOOD.replace("suite: baselines}", SUITE.format(lexicon))
    return next(
        step for step in plan_of(library_of(tmp_path, good=recipe), "good", DATA).steps if step.name == "report"
    )


def test_a_file_that_an_attack_reads_is_known_by_its_content(tmp_path: Path) -> None:
    first, second = tmp_path / "words.tsv", tmp_path / "others.tsv"
    first.write_text("big\tlarge\n")
    before = report(tmp_path, first)
    first.write_text("big\thuge\n")
    after = report(tmp_path, first)
    assert before.fingerprint != after.fingerprint
    first.write_text("big\tlarge\n")
    assert report(tmp_path, first).fingerprint == before.fingerprint
    second.write_text("big\tlarge\n")
    assert report(tmp_path, second).identity["files"] == before.identity["files"]
    with pytest.raises(RecipeError, match=r"synonyms: there is no file .*none\.tsv"):
        report(tmp_path, tmp_path / "none.tsv")


def test_the_code_of_an_attack_is_code_of_the_stage_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "words.tsv").write_text("big\tlarge\n")
    modules = modules_of(report(tmp_path, tmp_path / "words.tsv").stage)
    assert {"pipelines.judging.attacks.synonyms", "pipelines.judging.attacks.letter_case"} <= set(modules)
    assert "pipelines.judging.attacks.homophones" not in modules


@pytest.mark.parametrize(
    ("suite", "setting", "says"),
    [
        ("{name: robustness, attacks: [homophones]}", Setting(language="en"), "homophones is for zh"),
        ("{name: robustness, attacks: [distractor]}", Setting("text_classification"), "could change the right answer"),
        ("{name: robustness, attacks: [letter_case, letter_case]}", Setting(), "letter_case is given twice"),
        ("calibration", Setting("pair_classification"), "calibration is defined for text_classification; this"),
        ("pseudo_perplexity", Setting(), "stage 'classify' answers a task, but no evaluation here judges task models"),
    ],
)  # fmt: skip
def test_what_says_nothing_of_a_dataset_is_refused_at_load(
    suite: str, setting: Setting, says: str, tmp_path: Path
) -> None:
    library = library_of(tmp_path, good=GOOD.replace("suite: baselines", f"suite: {suite}"))
    with pytest.raises(RecipeError, match=says):
        library.load("good", setting=setting)
