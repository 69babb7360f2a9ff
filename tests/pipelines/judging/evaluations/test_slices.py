"""Slices and errors of real models, against what the written predictions say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.metrics import f1_score, precision_recall_fscore_support

from pipelines.judging.evaluations.slices import quartile_slices, source_slices, unknown_word_share, word_units
from pipelines.judging.evaluations.stage import EVALUATION, PREDICTIONS, evaluate
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.test_robustness import job


@pytest.fixture(scope="module")
def found(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    out = tmp_path_factory.mktemp("sliced")
    evaluate(job(trained, out, [{"name": "slices"}, {"name": "errors", "shown": 5}]))
    return json.loads((out / EVALUATION).read_text())["sections"], parquet.read_table(out / PREDICTIONS).to_pylist()


def test_classes_are_scored_as_scikit_learn_does(found: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    sections, rows = found
    mine = [row for row in rows if row["stage"] == "classify"]
    truth, given = [row["label"] for row in mine], [row["predicted"] for row in mine]
    labels = [one["label"] for one in sections["slices"]["classes"]]
    precision, recall, f1, support = precision_recall_fscore_support(truth, given, labels=labels, zero_division=0)
    for at, one in enumerate(sections["slices"]["classes"]):
        told = one["stages"]["classify"]
        assert (told["precision"], told["recall"], told["f1"]) == pytest.approx((precision[at], recall[at], f1[at]))
        assert 3 * one["examples"] == support[at], "three seeds answer each text"


def test_parts_hold_every_example_once_and_are_scored_by_their_own(
    found: tuple[dict[str, Any], list[dict[str, Any]]], trained: Trained
) -> None:
    section, rows = found[0]["slices"], found[1]
    texts = [text for text, _ in trained.splits["test"]]
    assert [one["by"] for one in section["slices"]] == ["length", "unknown_words"]
    for one in section["slices"]:
        assert sum(group["examples"] for group in one["groups"]) == len(texts)
    first = section["slices"][0]["groups"][0]
    shortest = int(first["name"].partition("–")[2].replace(",", ""))
    kept = {index for index, text in enumerate(texts) if len(text) <= shortest}
    assert len(kept) == first["examples"]
    for at, seed in enumerate((0, 1)):
        mine = [row for row in rows if (row["stage"], row["seed"]) == ("classify", seed) and row["index"] in kept]
        wanted = f1_score([row["label"] for row in mine], [row["predicted"] for row in mine], average="macro")
        assert first["stages"]["classify"]["per_seed"][at] == pytest.approx(wanted)


def test_quartiles_keep_equal_values_together_and_sources_are_files() -> None:
    groups = quartile_slices([1, 1, 1, 1, 1, 2, 3, 9])
    assert [group.name for group in groups] == ["1", "2", "3–9"]
    assert [row for group in groups for row in group.rows.tolist()] == list(range(8))
    rows = [{"source": f"{name}.tsv:{number}"} for number in range(3) for name in "ab"]
    assert [(group.name, group.rows.tolist()) for group in source_slices(rows)] == [
        ("a.tsv", [0, 2, 4]),
        ("b.tsv", [1, 3, 5]),
    ]
    assert source_slices([{"text": "x"}]) == []


def test_a_word_is_unknown_without_case_and_two_characters_are_one() -> None:
    assert word_units("Ada wrote, 这本书 it") == ["ada", "wrote", "这本", "本书", "it"]
    shares = [unknown_word_share(text, frozenset({"ada", "这本"})) for text in ("ADA left", "这本书", "")]
    assert shares == [0.5, 0.5, 0.0]


def test_errors_are_the_most_confident_wrong_answers(found: tuple[dict[str, Any], list[dict[str, Any]]]) -> None:
    sections, rows = found
    for stage in sections["errors"]["stages"]:
        mine = [row for row in rows if (row["stage"], row["seed"]) == (stage["stage"], 0)]
        wrong = [row for row in mine if row["label"] != row["predicted"]]
        assert stage["wrong"] == len(wrong) >= 5
        wanted = sorted(wrong, key=lambda row: (-round(float(np.max(row["probabilities"])), 6), row["index"]))[:5]
        assert [one["index"] for one in stage["errors"]] == [row["index"] for row in wanted]
        for one, row in zip(stage["errors"], wanted, strict=True):
            assert (one["right"], one["given"]) == (row["label"], row["predicted"])
