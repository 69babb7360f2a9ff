"""A task whose examples are first paragraphs: one line each, and whole texts of the training part without labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.documentation.documented_tasks import documented_examples, texts_without_labels
from pipelines.corpora.settings.dataset import load_dataset
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.errors import RecipeError

ROWS = [
    ("Solve a system\nof linear equations.\n\nUses LU factors.", "linalg", "a.py:solve", "train"),
    ("Short.\n\nIts summary has too few characters.", "linalg", "a.py:short", "train"),
    (
        "Compute the discrete Fourier transform.\n\nParameters\n----------\nx : array\n    Input.",
        "fft",
        "b.py:f",
        "test",
    ),
]
SUMMARIES = DocumentationTask.model_validate({"documentation": "scipy", "texts": "summaries"})


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.corpora.documentation.documented_tasks.task_rows", lambda task: iter(ROWS))


def test_examples_are_first_paragraphs_and_training_texts_whole() -> None:
    assert list(documented_examples(SUMMARIES)) == [
        ({"text": "Solve a system of linear equations.", "label": "linalg"}, "a.py:solve", "train"),
        ({"text": "Compute the discrete Fourier transform.", "label": "fft"}, "b.py:f", "test"),
    ]
    without = list(texts_without_labels(SUMMARIES))
    assert without == [(text, source) for text, _, source, part in ROWS if part == "train"], "no text of the test"


def test_whole_texts_stay_as_they_were() -> None:
    whole = DocumentationTask.model_validate({"documentation": "scipy"})
    assert [one["text"] for one, _, _ in documented_examples(whole)] == [text for text, *_ in ROWS]
    assert not list(texts_without_labels(whole)) and "texts" not in whole.model_dump()


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("{documentation: scipy, family: tagging, texts: summaries}", "tagging needs more than a text and its label"),
        ("{documentation: scipy, texts: summary}", "Input should be 'whole', 'summaries' or 'sessions'"),
    ],
)
def test_a_task_without_summaries_is_refused(tmp_path: Path, task: str, says: str) -> None:
    (tmp_path / "params.yaml").write_text(f"datasets:\n  mine:\n    general: g\n    domain: d\n    task: {task}\n")
    with pytest.raises(RecipeError, match=r"params\.yaml:5: datasets\.mine\.task") as refused:
        load_dataset("mine", tmp_path)
    assert says in str(refused.value)
