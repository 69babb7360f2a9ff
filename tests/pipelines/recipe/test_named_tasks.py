"""A stage reads any corpus or task that the dataset names: checked at load, planned over its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.recipe.plan import Plan, plan
from pipelines.recipe.problems import Setting
from pipelines.task_families import TaskFamily
from tests.pipelines.recipe.test_bad_recipes import GOOD
from tests.steps import library_of

DATASET = Setting(
    "text_classification", "en", {"parallel": {}}, {"cola": "text_classification", "stsb": "pair_regression"}
)
TABLES = ("general", "domain", "task_text", "parallel", "train", "validation", "test") + tuple(
    f"{task}.{part}" for task in ("cola", "stsb") for part in ("train", "validation", "test")
)
SCORED = GOOD.replace(
    "    corpus: task\n    head: sequence_classification\n    objective: cross_entropy",
    "    corpus: stsb\n    head: regression\n    objective: squared_error",
    1,
)
"""The good recipe, whose stage `classify` is trained on stsb."""


ALONE = SCORED[: SCORED.index("  small:")]
"""The same without the stages after it."""


def planned(folder: Path, text: str) -> Plan:
    library = library_of(folder, mine=text)
    data = {name: DataSource(digest=name, path=name) for name in TABLES}
    families = {name: TaskFamily.model_validate(one) for name, one in (DATASET.tasks or {}).items()}
    return plan(library.load("mine", setting=DATASET), library, data, TaskFamily.default(), families=families)


def refusal(folder: Path, text: str, setting: Setting = DATASET) -> str:
    with pytest.raises(RecipeError) as refused:
        library_of(folder, mine=text).load("mine", setting=setting)
    return str(refused.value)


def test_a_stage_on_a_named_task_reads_its_tables_and_answers_its_family(tmp_path: Path) -> None:
    text = (
        SCORED[: SCORED.index("  small:")]
        + "  report: {kind: evaluate, start: classify, corpus: task, suite: scores}\n"
    )
    general, classify, report = planned(tmp_path, text.replace("corpus: general", "corpus: [general, parallel]")).steps
    assert list(general.data) == ["general", "parallel"] and not general.families
    assert list(classify.data) == ["stsb.train", "stsb.validation"]
    assert classify.family.name == "pair_regression" and list(classify.families) == ["stsb"]
    assert list(report.data) == ["stsb.train", "stsb.validation", "stsb.test"], "judged on the task it was trained for"
    assert report.judged == {"subject:classify@0": ("stsb",)} and report.family.name == "pair_regression"


OTHER = SCORED[SCORED.index("  classify:") : SCORED.index("  small:")].replace("classify:", "score:")
BOTH = GOOD[: GOOD.index("  small:")] + OTHER
"""Recipe with a stage on the main task and a stage on stsb."""


def test_each_task_is_judged_in_a_stage_of_its_own(tmp_path: Path) -> None:
    message = refusal(tmp_path, BOTH + "  report: {kind: evaluate, start: [classify, score], suite: scores}\n")
    assert "stage 'classify' answers 'task' and stage 'score' answers 'stsb'" in message
    message = refusal(tmp_path, BOTH + "  report: {kind: evaluate, start: classify, corpus: stsb, suite: scores}\n")
    assert "corpus: no judged stage answers 'stsb'; they answer task" in message
    judged = "  {}: {{kind: evaluate, start: {}, suite: scores}}\n"
    separate = judged.format("one", "classify") + judged.format("two", "score")
    one, two = planned(tmp_path, BOTH + separate).steps[-2:]
    assert list(one.data) == ["train", "validation", "test"] and one.family == TaskFamily.default()
    assert list(two.data) == ["stsb.train", "stsb.validation", "stsb.test"] and two.family.name == "pair_regression"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("corpus: general", "corpus: parralel", (":6", "no corpus and no task 'parralel'", "Did you mean 'parallel'?")),
        ("    corpus: task\n", "    corpus: sts\n", (":17", "no corpus and no task 'sts'", "Did you mean 'stsb'?")),
        ("corpus: general", "corpus: cola", (":6", "'cola' is labelled data; this stage reads plain text")),
        ("    corpus: task\n", "    corpus: parallel\n", (":17", "corpus: task, or one of", "cola, stsb")),
        ("    corpus: task\n", "    corpus: stsb\n", (":18", "this dataset is pair_regression", "pair_regression")),
        ("corpus: task, suite", "corpus: tesk, suite", (":32", "no corpus and no task 'tesk'", "'task'")),
        (
            "    teacher: classify\n    corpus: task\n",
            "    teacher: classify\n    corpus: [cola, task]\n",
            (":26", "cola and task are two; give each a stage of its own"),
        ),
        (
            "    teacher: classify\n    corpus: task\n",
            "    teacher: classify\n    corpus: [cola, task_text]\n",
            (":26", "text of the main task, not of 'cola'"),
        ),
    ],
)
def test_a_word_that_the_dataset_lacks_or_uses_otherwise(
    tmp_path: Path, old: str, new: str, says: tuple[str, ...]
) -> None:
    assert old in GOOD
    message = refusal(tmp_path, GOOD.replace(old, new, 1))
    assert "\n" not in message and "mine.yaml" in message
    for part in says:
        assert part in message


def test_an_evaluation_must_be_defined_for_the_task_of_every_model(tmp_path: Path) -> None:
    text = ALONE + "  report: {kind: evaluate, start: classify, suite: calibration}\n"
    message = refusal(tmp_path, text)
    assert "calibration is defined for text_classification; this dataset is pair_regression" in message


def test_without_a_dataset_any_name_may_be_a_corpus_or_a_task(tmp_path: Path) -> None:
    assert library_of(tmp_path, mine=ALONE).load("mine").stages["classify"].corpus == ("stsb",)


def test_a_table_that_the_dataset_lacks_is_an_error_of_the_plan(tmp_path: Path) -> None:
    library = library_of(tmp_path, mine=ALONE)
    with pytest.raises(RecipeError, match=r"stages\.classify\.corpus: the dataset has no table 'stsb'"):
        plan(library.load("mine"), library, {"general": DataSource(digest="1", path="general")})
