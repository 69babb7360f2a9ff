"""Agreement of senses: by hand on planted states, chance for vectors without context, and the page of real models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from pipelines.judging.evaluations.sense_neighbours import (
    SAMPLE,
    SenseNeighboursEvaluation,
    agreement,
    by_word,
    chance,
)
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.occurrences import Occurrence
from pipelines.judging.samples import read_samples
from pipelines.reports.report import render_report
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.test_robustness import job

SENTENCES = {
    ("array", "shape"): ["Return the array of zeros.", "The array has two dimensions.", "A sorted array of integers"],
    ("array", "antenna"): ["The array receives a signal.", "A phased array of antennas"],
    ("solve", "linear"): ["Solve the linear system.", "To solve a x = b."],
    ("solve", "riddle"): ["They solve the crime.", "You solve the riddle."],
}


def planted(*words_and_senses: str) -> list[Occurrence]:
    return [Occurrence(one[0], one, 0, 1, one[1]) for one in words_and_senses]


def test_agreement_is_that_of_the_nearest_occurrence_of_the_same_word() -> None:
    occurrences = planted("ax", "ax", "ay", "ay", "bx", "by", "by", "bx")
    states = np.asarray([[1, 0.0], [1, 0.1], [0, 1], [0.9, 1], [1, 0], [1, 0.05], [0, 1], [0.2, 1]], dtype=np.float32)
    agrees, nearest = agreement(states, occurrences)
    # b's: 4 is nearest to 5 (y), 5 to 4 (x), 6 to 7 (x), 7 to 6 (y); a's vectors are no candidates
    assert nearest.tolist() == [1, 0, 3, 2, 5, 4, 7, 6]
    assert agrees.tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    assert by_word(agrees, occurrences).tolist() == [[4, 4], [0, 4]]


def test_vectors_without_context_have_the_agreement_of_chance() -> None:
    occurrences = planted("ax", "ax", "ax", "ay", "ay")
    same = np.repeat(np.random.default_rng(0).normal(size=(1, 64)), 5, axis=0).astype(np.float32)
    same *= np.asarray([[1.0], [1.1], [0.3], [7.0], [1.0]], dtype=np.float32)  # rounds differently, same direction
    agrees, nearest = agreement(same, occurrences)
    np.testing.assert_allclose(agrees, [2 / 4, 2 / 4, 2 / 4, 1 / 4, 1 / 4])
    assert nearest.tolist() == [-1] * 5
    np.testing.assert_allclose(agrees, chance(occurrences))


def test_a_tie_counts_by_the_share_of_the_right_sense() -> None:
    occurrences = planted("ax", "ax", "ay", "ay")
    states = np.asarray([[1, 0], [0, 1], [0, 1], [-1, 0]], dtype=np.float32)
    agrees, nearest = agreement(states, occurrences)
    assert agrees[0] == 0.5 and nearest[0] == -1, "1 (x) and 2 (y) are equally near to 0"
    assert nearest.tolist()[1:] == [2, 1, -1]


@pytest.fixture(scope="module")
def judged(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The store, and the folder of the artifact."""
    folder = tmp_path_factory.mktemp("senses")
    senses = folder / "senses.tsv"
    senses.write_text(
        "".join(f"{word}\t{sense}\t{text}\n" for (word, sense), texts in SENTENCES.items() for text in texts)
    )
    store = folder / "store"
    evaluate(job(trained, store / ("e" * 64), [{"name": "sense_neighbours", "senses": str(senses)}]))
    return store, store / ("e" * 64)


def test_figure_and_record_agree(judged: tuple[Path, Path], trained: Trained) -> None:
    section = json.loads((judged[1] / EVALUATION).read_text())["sections"]["sense_neighbours"]
    assert (section["sentences"], section["words"]) == (9, 2)
    assert section["chance"] == pytest.approx((3 * 2 / 4 + 2 * 1 / 4 + 4 * 1 / 3) / 9, abs=1e-4)
    samples = read_samples(judged[1])
    (figure,) = SenseNeighboursEvaluation.figures(job(trained, judged[0], []).family)
    for model in section["models"]:
        kept = samples[SAMPLE, model["stage"]]
        assert [figure.score(one) for one in kept] == pytest.approx(model["agreement"]["per_seed"], abs=1e-3)
        assert model["agreement"]["low"] <= model["agreement"]["mean"] <= model["agreement"]["high"]
        assert model["layers"][-1] == pytest.approx(model["agreement"]["mean"], abs=1e-3)
        assert set(model["words"]) == {"array", "solve"} and len(model["shown"]) == 4


def test_the_page_shows_models_words_and_sentences(judged: tuple[Path, Path], tmp_path: Path) -> None:
    step = {"stage": "report", "seed": 0, "kind": "evaluate", "fingerprint": "e" * 64, "parents": {}}
    execution = {
        "id": "20260101-000000-tiny",
        "recipe": "tiny",
        "dataset": "documentation",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 75.0,
        "steps": [{**step, "cached": False, "seconds": 3.0}],
    }
    render_report(execution, {}, judged[0], {}, {}, tmp_path / "report.html")
    page = (tmp_path / "senses.html").read_text(encoding="utf-8")
    assert "Nearest occurrence in the same sense" in page and "The array receives a signal." in page
    assert "next to one of the same sense" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "tables" / "senses-report-words.csv").exists()
