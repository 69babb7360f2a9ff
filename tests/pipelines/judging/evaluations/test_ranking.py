"""Ranks among candidates: by hand on planted scores, of a saved model one pair at a time, and on the page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.judging.evaluations.ranking import FIGURES, RankingEvaluation, chance, ranks, sample_of, with_candidates
from pipelines.judging.evaluations.stage import EVALUATION, evaluate
from pipelines.judging.samples import read_samples
from pipelines.judging.subjects import Subject
from pipelines.models.opening import ModelRecord, build_network, open_model
from pipelines.parts.heads.multiple_choice import MultipleChoiceHead
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.kinds import Kind
from pipelines.recipe.problems import Setting
from pipelines.recipe.schema import Stage
from pipelines.reports.elements.axes import percent
from pipelines.reports.report import render_report
from pipelines.task_families import TaskFamily
from pipelines.vocabulary import Field, Signal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.pipelines.recipe.test_parts_that_cannot_meet import refused
from tests.small_tasks import write_family

FAMILY = TaskFamily.model_validate("multiple_choice")
QUESTIONS: list[dict[str, Any]] = [
    {"text": "", "context": "", "question": f"question {number}", "choices": choices, "answer": answer}
    for number, (choices, answer) in enumerate(
        [(["a", "b"], 1), (["c", "d"], 0), (["c", "b", "e"], 2), (["f", "g"], 0), (["h", "a"], 0), (["b", "x"], 0)]
    )
]


def test_candidates_are_the_own_choices_and_right_ones_of_other_questions() -> None:
    asked = with_candidates(QUESTIONS, 5, seed=3)
    answers = {"b", "c", "e", "f", "h"}
    for before, after in zip(QUESTIONS, asked, strict=True):
        right, own = before["choices"][before["answer"]], set(before["choices"])
        assert after["choices"][after["answer"]] == right and own < set(after["choices"])
        assert len(set(after["choices"])) == 5 and set(after["choices"]) - own <= answers - own
        assert after["question"] == before["question"]
    assert asked == with_candidates(QUESTIONS, 5, seed=3) != with_candidates(QUESTIONS, 5, seed=4)
    shorter = with_candidates([{**QUESTIONS[2], "choices": [*"abcdefg"], "answer": 5}], 4, seed=0)
    assert shorter[0]["choices"] == ["f", "a", "b", "c"], "of more choices than candidates, the right one and the first"


def test_candidates_are_drawn_as_from_the_list_of_all_other_answers() -> None:
    rows = [{**QUESTIONS[0], "choices": [f"own {n}", f"right {n % 30}", f"right {(7 * n) % 30}"], "answer": n % 2}
            for n in range(60)]  # fmt: skip
    random, answers = np.random.default_rng([5, 11]), list(dict.fromkeys(row["choices"][row["answer"]] for row in rows))
    for before, after in zip(rows, with_candidates(rows, 9, seed=5), strict=True):
        right = before["choices"][before["answer"]]
        own = [right, *(choice for choice in dict.fromkeys(before["choices"]) if choice != right)]
        others = [answer for answer in answers if answer not in own]
        drawn = random.choice(len(others), size=9 - len(own), replace=False)
        assert after["choices"] == [*own, *(others[index] for index in drawn)]


def test_too_few_answers_are_refused_with_the_number_that_fits() -> None:
    assert len(with_candidates(QUESTIONS, 5, seed=0)[0]["choices"]) == 5
    for more in (6, 8):
        with pytest.raises(
            DataError, match=f"{more} candidates are more .* whose 5 different .* candidates to 5 or few"
        ):
            with_candidates(QUESTIONS, more, seed=0)


def test_figures_of_planted_ranks_and_of_chance() -> None:
    sample = sample_of(np.asarray([1, 2, 4, 3]))
    assert sample.tolist() == [[1, 1, 1], [0.5, 0, 1], [0.25, 0, 0], [1 / 3, 0, 1]]
    figures = {one.name: one.score(sample) for one in RankingEvaluation.figures(FAMILY)}
    assert figures == pytest.approx({"reciprocal_rank": 25 / 48, "recall_at_1": 0.25, "recall_at_3": 0.75})
    every = sample_of(np.arange(1, 21))
    assert chance(20) == pytest.approx({one.name: one.score(every) for one in RankingEvaluation.figures(FAMILY)})


def save(folder: Path, tokenizer: PreTrainedTokenizerFast, spread: float = 0.3) -> Path:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    record = ModelRecord(head=MultipleChoiceHead(pooling="cls"), family=FAMILY, corpus=("task",))
    record.write(config)
    network = build_network(record, config)
    for parameter in network.parameters():  # initial weights are so small that texts hardly differ
        parameter.data += spread * torch.randn_like(parameter)
    network.save_pretrained(folder)
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("ranking"), tokenizer)


@torch.no_grad()
def test_a_rank_is_that_of_scores_of_single_pairs(model: Path) -> None:
    opened, asked = open_model(model, "cpu"), with_candidates(QUESTIONS, 5, seed=0)
    expected = []
    for question in asked:
        scores = []
        for choice in question["choices"]:
            pair = opened.tokenizer(question["question"], choice, return_tensors="pt")
            one = {Field(name): value for name, value in pair.items()} | {Field.CHOICES: torch.ones(1, 1).long()}
            scores.append(float(opened.record.head.signals(opened.network, one, frozenset())[Signal.LOGITS]))
        expected.append(1 + sum(score > scores[0] for score in scores[1:]))
    assert len(set(expected)) > 1, "the test must tell questions apart"
    assert ranks(model, asked, 1).tolist() == expected


def test_a_model_that_cannot_tell_candidates_apart_ranks_the_right_one_last(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    folder = save(tmp_path, tokenizer, spread=0.0)
    opened = open_model(folder, "cpu")
    with torch.no_grad():
        for parameter in opened.network.parameters():
            parameter.zero_()
    opened.network.save_pretrained(folder)
    assert ranks(folder, with_candidates(QUESTIONS, 5, seed=0), 1).tolist() == [5] * len(QUESTIONS)


def test_a_model_whose_scores_are_no_numbers_ranks_the_right_one_last(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    folder = save(tmp_path, tokenizer)
    network = open_model(folder, "cpu").network
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(torch.nan)
    network.save_pretrained(folder)
    assert ranks(folder, with_candidates(QUESTIONS, 5, seed=0), 1).tolist() == [5] * len(QUESTIONS)


def test_the_record_the_samples_and_the_page_agree(model: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    tables, store = write_family(tmp_path / "data", "multiple_choice"), tmp_path / "store"
    out = store / ("e" * 64)
    suite = [{"name": "ranking", "candidates": 6}]
    stage = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["responses"], "suite": suite, "corpus": "task"})
    subjects = (Subject(stage="responses", seed=0, fingerprint="a" * 64, folder=model),)
    metrics = evaluate(
        Job(
            fingerprint="e" * 64, recipe="r", stage_name="report", stage=stage, seed=0, language="en", tables=tables,
            out=out, subjects=subjects, runtime=Runtime(threads=1), family=FAMILY,
        )
    ).metrics  # fmt: skip
    section = json.loads((out / EVALUATION).read_text())["sections"]["ranking"]
    assert section["candidates"] == 6 and section["questions"] == 12
    (sample,) = read_samples(out)["ranking", "responses"]
    (ranked,) = section["ranked"]
    for column, name in enumerate(FIGURES):
        assert ranked[name]["mean"] == pytest.approx(sample[:, column].mean())
        assert metrics[f"{name}/responses"] == ranked[name]["mean"]
        assert 0 <= ranked[name]["low"] <= ranked[name]["mean"] <= ranked[name]["high"] <= 1
    assert math.isclose(section["chance"]["recall_at_3"], 0.5)
    step = {"stage": "report", "seed": 0, "kind": "evaluate", "fingerprint": "e" * 64, "parents": {}}
    execution = {
        "id": "20260101-000000-tiny",
        "recipe": "tiny",
        "dataset": "documentation",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 75.0,
        "steps": [{**step, "cached": False, "seconds": 3.0}],
    }
    render_report(execution, {}, store, {}, {}, tmp_path / "report.html")
    shown = percent(ranked["recall_at_3"]["mean"])
    for page, words in (("ranking.html", "Mean reciprocal rank"), ("ranking.zh.html", "平均倒数排名")):
        text = (tmp_path / page).read_text(encoding="utf-8")
        assert words in text and shown in text
    assert "Of 6 candidates for each of 12 questions, responses" in (tmp_path / "report.html").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "tables" / "ranking-report-ranking.csv").exists()


def test_heads_that_score_no_choices_are_refused(tmp_path: Path) -> None:
    text = labelled(
        "  report: {kind: evaluate, start: [answer], corpus: task, suite: ranking}",
        head="copied_decoder",
        objective="sequence_to_sequence",
    )
    message = refused(tmp_path, text, Setting("multiple_choice", "en"))
    assert "copied_decoder does not provide logits; heads that do: " in message and "multiple_choice" in message
    message = refused(tmp_path, text.replace("suite: ranking", "suite: {name: ranking, candidates: 3}"), Setting())
    assert "greater than or equal to 4" in message
