"""Attribution of real models: words that an answer needs, against random ones; and words as they are removed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations.attribution import SAMPLE, AttributionEvaluation, beyond_random
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.evaluations.word_removal import without_words, word_spans, words_of_tokens
from pipelines.judging.samples import read_samples
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.test_robustness import job
from tests.pipelines.judging.evaluations.tiny_classifier import write_tables

KEYS = {"name": "attribution", "texts": 30, "steps": 8}


def test_a_text_without_words_keeps_the_others_as_they_were() -> None:
    text = " Return the\nsum, always."
    spans = word_spans(text, "en")
    assert [text[begin:end] for begin, end in spans] == ["Return ", "the\n", "sum, ", "always."]
    assert without_words(text, spans, [1]) == " Return sum, always."
    assert without_words(text, spans, [0, 3]) == " the\nsum, "
    assert without_words(text, spans, []) == text
    assert [*word_spans("好 书。", "zh")] == [(0, 2), (2, 3), (3, 4)]


def test_a_token_belongs_to_the_word_of_its_last_character() -> None:
    spans = word_spans(" ab cd", "en")
    # special, "ab", "c" with the space before it, "d", special
    assert words_of_tokens([(0, 0), (0, 3), (3, 5), (5, 6), (0, 0)], spans) == [-1, 0, 1, 1, -1]
    assert words_of_tokens([(0, 1)], spans) == [-1], "the space before the first word is in none"


def test_figures_are_falls_beyond_that_of_random_words() -> None:
    rows = np.asarray([[0.9, 0.2, 0.1, 0.8], [0.6, 0.5, 0.3, 0.4]])
    assert beyond_random(1)(rows) == pytest.approx((0.6 - 0.1) / 2)
    assert beyond_random(2)(rows) == pytest.approx((0.7 + 0.1) / 2)


def test_an_answer_falls_further_without_its_words_than_without_random_ones(trained: Trained, tmp_path: Path) -> None:
    evaluate(job(trained, tmp_path, [KEYS]))
    section = json.loads((tmp_path / EVALUATION).read_text())["sections"]["attribution"]
    assert (section["examples"], section["steps"]) == (30, 8)
    samples = read_samples(tmp_path)
    figures = AttributionEvaluation.figures(job(trained, tmp_path, []).family)
    for stage in section["stages"]:
        kept = samples[SAMPLE, stage["stage"]]
        assert all(rows.shape == (30, 4) and (rows >= 0).all() and (rows <= 1).all() for rows in kept)
        for figure in figures:
            assert [figure.score(rows) for rows in kept] == pytest.approx(stage[figure.name]["per_seed"])
        assert stage["path_error"] < 0.1
    learned = next(one for one in section["stages"] if one["stage"] == "classify")
    # which of the two choices is better depends on the model
    assert all(learned[figure.name]["mean"] > 0.05 for figure in figures)
    assert learned["probability"]["whole"] > learned["probability"]["random"] > learned["probability"]["gradients"]
    assert all(set(one["gradients"]) <= set(one["text"].split()) for one in learned["shown"])


def test_the_same_models_give_the_same_record(trained: Trained, tmp_path: Path) -> None:
    one = tuple(each for each in trained.subjects if each.stage == "classify" and each.seed == 0)
    for name in ("a", "b"):
        evaluate(job(trained, tmp_path / name, [KEYS | {"texts": 5}], subjects=one))
    assert (tmp_path / "a" / EVALUATION).read_text() == (tmp_path / "b" / EVALUATION).read_text()


def test_models_without_gradients_and_texts_of_one_word_are_refused(trained: Trained, tmp_path: Path) -> None:
    graph = (trained.first("int8"),)
    with pytest.raises(RecipeError, match="int8@0 is served from a graph, which has no gradients"):
        evaluate(job(trained, tmp_path / "graph", [KEYS], subjects=graph))
    short = write_tables({**trained.splits, "test": [("word", "email")]}, tmp_path / "tables")
    with pytest.raises(DataError, match="no test text has two words"):
        evaluate(job(trained, tmp_path / "short", [KEYS], tables=short))
    assert not (tmp_path / "short").exists() and not (tmp_path / "graph" / EVALUATION).exists()
