"""Named tasks and corpora in params.yaml: what is understood, and what the answer to a mistake says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.settings.dataset import DatasetSettings, load_dataset
from pipelines.corpora.settings.sources import FileSource
from pipelines.errors import RecipeError

TEXTS = """\
datasets:
  mine:
    general: general.txt
    domain: domain.txt
"""
TASK = "    task: {train: a.jsonl, test: b.jsonl}\n"
TASKS = """\
    tasks:
      cola: {train: a.jsonl, test: b.jsonl}
      stsb: {family: pair_regression, train: c.tsv, test: d.tsv}
"""


def loaded(folder: Path, text: str) -> DatasetSettings:
    (folder / "params.yaml").write_text(TEXTS + text)
    return load_dataset("mine", folder)


def test_the_main_task_stands_alone_or_is_the_first_of_the_named_ones(tmp_path: Path) -> None:
    assert list(loaded(tmp_path, TASK).labelled) == ["task"]
    named = loaded(tmp_path, TASKS)
    assert (named.main_name, list(named.labelled), named.main) == ("cola", ["task", "stsb"], named.tasks["cola"])
    both = loaded(tmp_path, TASK + TASKS)
    assert (both.main_name, list(both.labelled), both.main) == (None, ["task", "cola", "stsb"], both.task)


def test_a_corpus_is_its_sources_or_a_mapping_with_columns(tmp_path: Path) -> None:
    corpora = """\
    corpora:
      reviews: [a.jsonl, b.txt]
      parallel: {path: c.jsonl, columns: {translation: string}}
      plain: {path: c.tsv, columns: [text, rest]}
      pages:
        sources: [{path: d.tsv, columns: [text, boxes], values: {language: en}}]
        columns: {boxes: list<list<int64>>, language: string}
"""
    known = loaded(tmp_path, TASK + corpora).corpora
    assert {name: len(one.sources) for name, one in known.items()} == {
        "reviews": 2,
        "parallel": 1,
        "plain": 1,
        "pages": 1,
    }
    assert known["parallel"].columns == {"translation": "string"} and known["plain"].columns == {}
    assert known["pages"].columns == {"boxes": "list<list<int64>>", "language": "string"}
    (source,) = known["plain"].sources
    assert isinstance(source, FileSource) and source.columns == ["text", "rest"]


CORPUS = TASK + "    corpora:\n"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 2, "task: give the labelled examples: one set under task, or several by name under tasks"),
        ("    tasks: {}\n", 5, "tasks: is empty"),
        (TASK + "    corpora: {}\n", 6, "corpora: is empty"),
        ("    tasks:\n      cola: {train: a.jsonl}\n", 6, "tasks.cola.test: Field required"),
        ("    tasks:\n      cola: {train: a, tesst: b}\n", 6, "tasks.cola: unknown key 'tesst'. Did you mean 'test'?"),
        ("    tasks:\n      ../x: {train: a, test: b}\n", 6, "use up to 40 lower-case letters, digits, '-' and '_'"),
        ("    tasks:\n      train: {train: a, test: b}\n", 6, "'train' already means something in recipes"),
        (CORPUS + "      general: a.txt\n", 7, "corpora.general: 'general' already means something in recipes"),
        (TASKS + "    corpora:\n      cola: a.txt\n", 9, "corpora.cola: there is a task 'cola' too"),
        (TASK + TASKS.replace("b.jsonl}", "b.jsonl, unlabelled: c.txt}"), 7, "only the main task has a table for it"),
        (CORPUS + "      x:\n        pth: a.jsonl\n", 8, "unknown key 'pth'. Did you mean 'path'?"),
        (CORPUS + "      x: {path: a.jsonl, columns: {y: list<int>}}\n", 7, "x.columns.y: Input should be 'string', "),
        (CORPUS + "      x: {path: a.jsonl, columns: {text: string}}\n", 7, "every corpus has a column 'text'"),
        (CORPUS + "      x: {path: a.jsonl, columns: {a b: string}}\n", 7, "column 'a b': use letters, digits and '_'"),
        (CORPUS + "      x: {documentation: general, columns: {y: string}}\n", 7, "has texts only, no columns"),
        (CORPUS + "      x: {path: a.jsonl, values: {y: z}}\n", 7, "'y' is not a declared column"),
    ],
)
def test_a_mistake_is_answered_with_its_line_and_what_to_write(tmp_path: Path, text: str, line: int, says: str) -> None:
    with pytest.raises(RecipeError) as error:
        loaded(tmp_path, text)
    assert str(error.value).startswith(f"params.yaml:{line}: datasets.mine") and says in str(error.value)


def test_two_tasks_of_one_name_are_a_key_given_twice(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"params\.yaml:8: the key 'cola' is given twice"):
        loaded(tmp_path, TASKS + "      cola: {train: e.jsonl, test: f.jsonl}\n")


def test_values_are_for_columns_of_named_corpora_only(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(
        TEXTS.replace("general: general.txt", "general: {path: general.txt, values: {language: en}}") + TASK
    )
    with pytest.raises(RecipeError, match="only sources of a named corpus"):
        load_dataset("mine", tmp_path)
