"""The linear probe against scikit-learn's own objective, and control tasks that really are drawn by lot."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pipelines.judging.probes import LAYERS
from pipelines.judging.probes.linear import LinearProbe, control_labels
from pipelines.judging.probes.regression import fit_softmax_regression
from tests.pipelines.judging.probes.small_models import opened, save_model, write_table

COLOURS = {"red": "B-colour", "blue": "B-colour", "green": "B-colour"}
NOUNS = ["parser", "value", "option", "file", "name", "string", "list", "key"]


def sentences(number: int, seed: int) -> list[dict[str, list[str]]]:
    """Words whose tag is a property of the word: any layer that keeps words apart can tell it."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(number):
        words = [str(word) for word in random.choice([*COLOURS, *NOUNS], 8)]
        rows.append({"tokens": words, "tags": [COLOURS.get(word, "O") for word in words]})
    return rows


def test_it_is_softmax_regression_with_half_the_squared_norm() -> None:
    random = np.random.default_rng(0)
    states = random.normal(size=(300, 5)).astype(np.float32)
    labels = np.asarray(
        ["abc"[int(n)] for n in (states[:, 0] + random.normal(size=300) > 0).astype(int) + (states[:, 1] > 1)]
    )
    model = fit_softmax_regression(states, labels, 3.0)
    scaled = (states.astype(np.float64) - states.mean(0)) / states.std(0)
    weights, bias = model[-1].coef_, model[-1].intercept_
    scores = scaled @ weights.T + bias
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    truth = labels[:, None] == model.classes_
    # where it stands, the gradient of Σ −log p + penalty · ‖W‖² / 2 is nothing
    gradient = (chances - truth).T @ scaled + 3.0 * weights
    assert np.abs(gradient).max() < 0.05 and np.abs((chances - truth).sum(0)).max() < 0.05
    assert (model.predict(states) == model.classes_[scores.argmax(1)]).all()


def test_a_control_task_gives_each_word_type_a_label_of_its_own_by_lot() -> None:
    types = [f"word{n}" for n in range(4000)]
    drawn = control_labels([*types, *types], {"a": 700, "b": 200, "c": 100}, 0)
    shares = {label: count / 4000 for label, count in Counter(drawn.values()).items()}
    assert shares == pytest.approx({"a": 0.7, "b": 0.2, "c": 0.1}, abs=0.03)
    assert drawn == control_labels(reversed(types), {"a": 700, "b": 200, "c": 100}, 0), (
        "the type decides, not its place"
    )
    other = control_labels(types, {"a": 700, "b": 200, "c": 100}, 1)
    same = sum(drawn[one] == other[one] for one in types) / 4000
    assert same == pytest.approx(0.7**2 + 0.2**2 + 0.1**2, abs=0.04), "two seeds agree no more than chance"


def test_what_a_word_is_can_be_read_and_what_the_lot_said_of_new_words_cannot(tmp_path: Path) -> None:
    new = [{"tokens": ["unheard", "of", "words", str(n)], "tags": ["O"] * 4} for n in range(20)]
    tables = {
        "train": write_table(tmp_path / "train.parquet", sentences(60, 0)),
        "test": write_table(tmp_path / "test.parquet", [*sentences(30, 1), *new]),
    }
    probe = LinearProbe()
    seen = probe.observe(opened(save_model(tmp_path / "model"), tables, "tagging"))
    statistics = seen.statistics[LAYERS]
    assert statistics.shape == (3, 50, 3)
    # the order of the test rows is drawn: known sentences have eight words
    known = statistics[0][statistics[0][:, 2] == 8]
    assert probe.score("accuracy", known) == 1.0
    # the word's own embedding remembers what was drawn for it
    assert probe.score("control", known) > 0.95
    assert probe.score("selectivity", known) == pytest.approx(
        probe.score("accuracy", known) - probe.score("control", known)
    )
    assert statistics[0][:, 2].sum() == 30 * 8 + 20 * 4


def test_words_beyond_the_row_are_not_asked(tmp_path: Path) -> None:
    long = [{"tokens": ["red"] * 100, "tags": ["B-colour"] * 100}]
    tables = {
        "train": write_table(tmp_path / "train.parquet", sentences(40, 0)),
        "test": write_table(tmp_path / "test.parquet", long),
    }
    seen = LinearProbe().observe(opened(save_model(tmp_path / "model"), tables, "tagging", length=32))
    assert seen.statistics[LAYERS][0, 0, 2] + seen.notes["not_covered"] == 100 and 10 <= seen.notes["words"] <= 30


def test_a_text_is_asked_by_its_class(tmp_path: Path) -> None:
    texts = [{"text": " ".join(row["tokens"]), "label": row["tags"][0]} for row in sentences(80, 0)]
    tables = {name: write_table(tmp_path / f"{name}.parquet", texts) for name in ("train", "test")}
    probe = LinearProbe()
    seen = probe.observe(opened(save_model(tmp_path / "model"), tables, "text_classification"))
    assert seen.statistics[LAYERS].shape == (3, 80, 3) and set(seen.statistics[LAYERS][0, :, 2]) == {1.0}
