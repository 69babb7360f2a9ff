"""Which language each table is asked for: that of the dataset, of its sources, or of the test examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.settings.dataset import load_dataset
from pipelines.errors import RecipeError
from tasks.quality.questions import language_questions

PARAMS = """
datasets:
  transfer:
    general: [{path: general.txt}]
    domain: [{path: domain.txt}]
    corpora:
      other: [{path: other.txt, language: zh}]
      both: [{path: domain.txt}, {path: other.txt, language: zh}]
    task: {train: train.tsv, test: test.tsv, test_language: LANGUAGE}
    tasks:
      pairs: {train: pairs.jsonl, test: pairs_test.jsonl, family: pair_classification}
"""


def languages(root: Path, table: str) -> list[str]:
    questions = language_questions(table, load_dataset("transfer", root))
    return [question.arguments["language"] for question in questions]


@pytest.mark.parametrize(
    ("table", "language"),
    [
        ("general", ["en"]),
        ("train", ["en"]),
        ("validation", ["en"]),
        ("test", ["zh"]),
        ("pairs.test", ["en"]),
        ("other", ["zh"]),
        ("both", []),
    ],
)
def test_a_test_table_is_in_the_language_that_is_stated_for_it(tmp_path: Path, table: str, language: list[str]) -> None:
    (tmp_path / "params.yaml").write_text(PARAMS.replace("LANGUAGE", "zh"))
    assert languages(tmp_path, table) == language


def test_a_language_that_is_no_code_is_refused(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(PARAMS.replace("LANGUAGE", "Chinese"))
    with pytest.raises(RecipeError, match="test_language: String should match pattern"):
        load_dataset("transfer", tmp_path)
