"""Neighbours asked of documents of one sentence: refused before anything is computed, with the table's path."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import DataError
from pipelines.recipe.job import Job
from pipelines.recipe.schema import Stage
from tests.pipelines.judging.probes.small_models import write_table
from tests.steps import shipped

ONE = ["A line of text", "Returns the sum.", "Is this one? ", "Wait...", "见下文。", "没有句号"]


def job(tmp_path: Path, stage: Stage, texts: list[str], column: str = "text") -> Job:
    table = write_table(tmp_path / "domain.parquet", [{column: text} for text in texts])
    return Job(
        fingerprint="a" * 64, recipe="mine", stage_name="general", stage=stage, seed=0, language="en",
        tables=dict.fromkeys(stage.corpus or ("domain",), table), out=tmp_path,
    )  # fmt: skip


@pytest.mark.parametrize("recipe", ["skip_thoughts", "quick_thoughts", "gensen", "use"])
def test_documents_of_one_sentence_are_refused(tmp_path: Path, recipe: str) -> None:
    stage = shipped(recipe).stages["next_alone" if recipe == "gensen" else "general"]
    line = ".*line next" if stage.lines else ""
    reason = rf"stage general{line}: no document of .*domain.parquet has two sentences"
    with pytest.raises(DataError, match=reason) as refused:
        job(tmp_path, stage, ONE)
    assert "neighbouring_sentence" in str(refused.value) and "documents of several sentences" in str(refused.value)


@pytest.mark.parametrize("text", ["One. Two.", "One? two", "第一句。第二句。", "An end.\n\nA beginning"])
def test_one_document_with_two_sentences_is_enough(tmp_path: Path, text: str) -> None:
    assert job(tmp_path, shipped("skip_thoughts").stages["general"], [*ONE, text]).stage_name == "general"


def test_a_stage_that_pairs_no_sentences_reads_none(tmp_path: Path) -> None:
    assert job(tmp_path, shipped("skip_thoughts").stages["bag_of_words"], ONE)
    assert job(tmp_path, shipped("bert").stages["general"], ONE), "segments of a document are no sentences"
    untrained = shipped("skip_thoughts").stages["next_alone"].model_copy(update={"objective": ()})
    assert not untrained.trains and job(tmp_path, untrained, ONE)


def test_translations_are_no_neighbours(tmp_path: Path) -> None:
    stage = shipped("lm_or_translation").stages["translation"]
    table = write_table(tmp_path / "parallel.parquet", [{"text": "One", "translation": "Eins"}])
    assert Job(
        fingerprint="a" * 64, recipe="mine", stage_name="translation", stage=stage, seed=0, language="en",
        tables={"parallel": table}, out=tmp_path,
    )  # fmt: skip
