"""params.yaml: what is understood, and what the answer to a mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.settings import DocumentationTask, FileSource, FileTask, load_dataset, load_settings
from pipelines.errors import RecipeError
from tests.corpora.small_dataset import PARAMS

REPOSITORY = Path(__file__).parents[2]


def test_the_repository_s_own_settings_describe_the_documentation_task() -> None:
    settings = load_settings(REPOSITORY)["docstrings"]
    assert isinstance(settings.task, DocumentationTask)
    assert settings.task.labels_per_class == 20
    assert settings.recipe == "bert"


def test_a_path_may_stand_alone_and_defaults_are_filled_in(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(PARAMS)
    settings = load_dataset("small", tmp_path)
    assert settings.general == [FileSource(path="texts/general", text="text")]
    assert isinstance(settings.task, FileTask)
    assert settings.task.validation is None
    assert settings.budget == {}


@pytest.mark.parametrize(
    ("wrong", "right", "line", "says"),
    [
        ("tesst:", "test:", 7, "Did you mean 'test'?"),
        ("lable:", "label:", 9, "Did you mean 'label'?"),
        ("genral:", "general:", 3, "Did you mean 'general'?"),
        ("labels_per_class: none", "labels_per_class: 8", 10, "valid integer"),
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
    with pytest.raises(RecipeError, match="not readable as YAML"):
        load_settings(tmp_path)
