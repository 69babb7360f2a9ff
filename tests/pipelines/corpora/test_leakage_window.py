"""Thirteen words in a row that stand in the evaluation are a leak; twelve are not (arXiv:2005.14165, appendix C)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.corpora.duplicates.shingles import Letters
from pipelines.corpora.leaks.evaluation_index import EvaluationIndex
from pipelines.corpora.settings.dataset import load_settings
from pipelines.corpora.steps.decontaminate import rules_of
from tests.pipelines.corpora.small_dataset import write_small_dataset

WORDS = [f"shared{number}" for number in range(20)]


def around(words: list[str]) -> str:
    """The words inside a text of others."""
    return " ".join([*(f"before{number}" for number in range(30)), *words, *(f"after{number}" for number in range(30))])


@pytest.mark.parametrize(("shared", "leaks"), [(12, False), (13, True), (14, True)])
def test_a_dataset_without_settings_looks_at_runs_of_thirteen_words(shared: int, leaks: bool, tmp_path: Path) -> None:
    write_small_dataset(tmp_path)
    rules = rules_of(load_settings(tmp_path)["small"])
    index = EvaluationIndex([" ".join(WORDS[:shared])], rules)
    (hits,) = index.hits(Letters.of([around(WORDS[:shared])]))
    assert [hit.kind for hit in hits] == ["ngram"] * leaks


def test_half_of_the_runs_of_an_evaluation_text_are_enough(tmp_path: Path) -> None:
    write_small_dataset(tmp_path)
    rules = rules_of(load_settings(tmp_path)["small"])
    index = EvaluationIndex([" ".join(WORDS)], rules)  # eight runs
    found = index.hits(Letters.of([around(WORDS[:16]), around(WORDS[:15])]))
    assert [[(hit.kind, hit.overlap) for hit in hits] for hits in found] == [[("ngram", 0.5)], []]
