"""params.yaml: what is understood, and what the answer to a mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.settings.dataset import load_dataset, load_settings
from pipelines.corpora.settings.sources import FileSource
from pipelines.corpora.settings.task import DocumentationTask, FileTask
from pipelines.errors import RecipeError
from tests.pipelines.corpora.small_dataset import PARAMS

REPOSITORY = Path(__file__).parents[3]


def test_the_repository_s_own_settings_describe_the_documentation_task() -> None:
    settings = load_settings(REPOSITORY)["docstrings"]
    assert isinstance(settings.task, DocumentationTask)
    assert settings.task.labels_per_class == 20 and settings.task.family.name == "text_classification"
    assert settings.recipe == "regime"


def test_a_path_may_stand_alone_and_defaults_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(PARAMS)
    settings = load_dataset("small", tmp_path)
    assert settings.general == [FileSource(path="texts/general", text="text")]
    assert isinstance(settings.task, FileTask)
    assert settings.task.validation is None and settings.task.columns == {"text": "sentence", "label": "topic"}
    assert settings.budget == {}


@pytest.mark.parametrize(
    ("wrong", "right", "line", "says"),
    [
        ("tesst:", "test:", 7, "Did you mean 'test'?"),
        ("lable:", "label:", 9, "Did you mean 'label'?"),
        ("genral:", "general:", 3, "Did you mean 'general'?"),
        ("labels_per_class: none", "labels_per_class: 8", 10, "valid integer"),
        ("family: pair_clasification\n      train:", "train:", 6, "Did you mean 'pair_classification'?"),
        ("columns: {text: sentence}\n      train:", "train:", 6, "unknown key 'columns'"),
        ("labels_per_class: 8\n      labelled_examples: 5", "labels_per_class: 8", 5, "are mutually exclusive"),
        ("task: []\n    nothing:", "task:", 5, "unknown key 'nothing'"),
    ],
)
def test_a_mistake_is_answered_with_its_line_and_what_to_write(
    tmp_path: Path, wrong: str, right: str, line: int, says: str
) -> None:
    (tmp_path / "params.yaml").write_text(PARAMS.replace(right, wrong, 1))
    with pytest.raises(RecipeError) as error:
        load_settings(tmp_path)
    assert says in str(error.value)
    if "nothing" not in wrong:
        assert str(error.value).startswith(f"params.yaml:{line}: datasets.small")


def test_an_unknown_dataset_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(PARAMS)
    with pytest.raises(RecipeError, match="no dataset is called 'smal'. Did you mean 'small'?"):
        load_dataset("smal", tmp_path)


def test_params_that_are_missing_or_broken_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no params.yaml here"):
        load_settings(tmp_path)
    (tmp_path / "params.yaml").write_text("datasets: {a: [")
    with pytest.raises(RecipeError, match=r"params\.yaml:1: not valid YAML: "):
        load_settings(tmp_path)


def test_every_family_takes_its_own_columns_and_counts_its_own_way(tmp_path: Path) -> None:
    pairs = PARAMS.replace("text: sentence\n      label: topic", "family: pair_regression\n      text_a: premise")
    (tmp_path / "params.yaml").write_text(pairs.replace("labels_per_class", "labelled_examples"))
    task = load_dataset("small", tmp_path).task
    assert isinstance(task, FileTask) and task.columns == {"text_a": "premise"} and task.labelled_examples == 8
    (tmp_path / "params.yaml").write_text(pairs)
    with pytest.raises(RecipeError, match="labels_per_class: pair_regression has no classes; use labelled_examples"):
        load_settings(tmp_path)
    (tmp_path / "params.yaml").write_text(PARAMS.replace("text: sentence", "text_a: sentence"))
    with pytest.raises(RecipeError, match="unknown key 'text_a'. Did you mean 'text'?"):
        load_settings(tmp_path)


def test_a_share_is_a_range(tmp_path: Path) -> None:
    wrong = PARAMS.replace("general: texts/general", "general: {path: texts/general, share: [0.5, 0.2]}")
    (tmp_path / "params.yaml").write_text(wrong)
    with pytest.raises(RecipeError, match="expected two numbers from 0 to 1, the smaller first"):
        load_settings(tmp_path)
