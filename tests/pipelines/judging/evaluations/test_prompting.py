"""Prompts, and what language models answer to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, GPT2Config, PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations.prompting import PromptingEvaluation, calibrated
from pipelines.judging.evaluations.prompts import Prompts, log_likelihoods, open_language_model
from pipelines.models.opening import ModelRecord, build_network
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.task_families import TaskFamily
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import LABELS, documents

FAMILY = TaskFamily.model_validate("text_classification")
TRAIN = [{"text": documents(label)[row], "label": label} for row in range(6) for label in LABELS]
TEST = [{"text": documents(label)[row], "label": label} for row in range(6, 10) for label in LABELS]


def save(folder: Path, tokenizer: PreTrainedTokenizerFast, texts: list[str] | None = None, steps: int = 0) -> Path:
    """A small GPT with 96 positions, trained for `steps` steps on `texts`."""
    torch.manual_seed(0)
    head = CausalLMHead()
    network = build_network(
        ModelRecord(head=head), GPT2Config(vocab_size=512, n_embd=64, n_layer=2, n_head=2, n_positions=96)
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    if texts:
        read = tokenizer(texts, padding=True, return_tensors="pt", add_special_tokens=False)
        batch = {Field.INPUT_IDS: read["input_ids"], Field.ATTENTION_MASK: read["attention_mask"]}
    for _ in range(steps):
        said = head.signals(network, batch, frozenset({Signal.NEXT_LOGITS}))
        (term,) = CausalLM().loss(TrainingStep(batch, said, network, lambda *_: {})).values()
        optimizer.zero_grad()
        term.backward()
        optimizer.step()
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def untrained(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("untrained"), tokenizer)


def test_a_likelihood_is_the_mean_over_the_answers_tokens_read_one_by_one(untrained: Path) -> None:
    opened = open_language_model(untrained)
    random = np.random.default_rng(0)
    prompts = [
        (random.integers(5, 512, size).tolist(), [[7], [7, 8], [7, 8, 9], [300, 8], [8]])
        for size in (3, 40, 17, 40, 90)
    ]
    for (prompt, answers), heard in zip(prompts, log_likelihoods(opened, prompts), strict=True):
        for answer, told in zip(answers, heard, strict=True):
            with torch.no_grad():
                chances = opened.network(torch.tensor([[*prompt, *answer]])).logits[0].double().log_softmax(-1)
            expected = np.mean([float(chances[len(prompt) - 1 + at, token]) for at, token in enumerate(answer)])
            assert told == pytest.approx(expected, abs=1e-5)


def test_a_prompt_is_answered_examples_and_an_open_one(tokenizer: PreTrainedTokenizerFast) -> None:
    prompts = Prompts(tokenizer, FAMILY, TRAIN, 12, seed=0)
    question = prompts.prompted_example(TEST[1])
    cut = tokenizer.decode(tokenizer(TEST[1]["text"], add_special_tokens=False)["input_ids"][:12])
    assert tokenizer.decode(question.text) == f"text : {cut} label :"
    assert [tokenizer.decode(answer) for answer in question.answers] == list(LABELS)
    assert [row["label"] for row in question.filled] == list(LABELS)
    shots = prompts.shots(3, 6)
    assert prompts.shots(3, 2) == shots[:2] and prompts.shots(4, 6) != shots
    assert Prompts(tokenizer, FAMILY, TRAIN, 12, seed=1).shots(3, 6) != shots
    said = [tokenizer.decode(shot) for shot in shots]
    assert len(set(said)) == 6 and all(text.startswith("text :") and text.split()[-1] in LABELS for text in said)
    assert tokenizer.decode(prompts.content_free(TEST[1], "N/A").text) == "text : n / a label :"
    choices = TaskFamily.model_validate("multiple_choice")
    row = {"context": "A log.", "question": "What is it?", "choices": ["a log", "a file"], "answer": 1}
    offered = Prompts(tokenizer, choices, [row], None, seed=0).prompted_example(row)
    assert [choices.gold(one) for one in offered.filled] == [0, 1] and len(offered.answers) == 2


def test_a_model_that_has_read_answered_examples_answers_them(
    untrained: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    evaluation = PromptingEvaluation(shots=(0, 1), tokens=12)
    prompts = Prompts(tokenizer, FAMILY, TRAIN, 12, seed=0)
    texts = [tokenizer.decode(shot) for shot in prompts.shots(0, len(TRAIN))]
    trained = save(tmp_path, tokenizer, [f"{tokenizer.sep_token} {text}" for text in texts], steps=60)
    gold = [row["label"] for row in TRAIN]
    before, after = (evaluation.answers(folder, FAMILY, TRAIN, TRAIN, seed=0) for folder in (untrained, trained))
    assert evaluation.answers(trained, FAMILY, TRAIN, TRAIN, seed=0) == after, "the same prompts, the same answers"
    # its texts are those of the Python at hand, and a tiny network may miss one
    assert sum(a == b for a, b in zip(after[0], gold, strict=True)) >= 0.9 * len(gold)
    assert sum(a == b for a, b in zip(before[0], gold, strict=True)) < len(gold) / 2


def test_calibrated_answers_are_those_of_the_same_prompts_less_what_says_nothing(
    untrained: Path, tokenizer: PreTrainedTokenizerFast
) -> None:
    opened, prompts = open_language_model(untrained), Prompts(tokenizer, FAMILY, TRAIN, 12, seed=0)
    expected, plain = [], []
    for place, row in enumerate(TEST):
        behind = [*prompts.start, *(token for shot in prompts.shots(place, 1) for token in shot)]
        asked = [prompts.prompted_example(row), *(prompts.content_free(row, text) for text in ("N/A", "[MASK]", ""))]
        scores, *empty = log_likelihoods(opened, [([*behind, *one.text], one.answers) for one in asked])
        expected.append(LABELS[int(calibrated(scores, empty).argmax())])
        plain.append(LABELS[int(scores.argmax())])
    ours = PromptingEvaluation(shots=(1,), tokens=12, calibrate=True).answers(untrained, FAMILY, TRAIN, TEST, seed=0)
    assert ours == {1: expected} and expected != plain
    assert PromptingEvaluation(shots=(1,), tokens=12).answers(untrained, FAMILY, TRAIN, TEST, seed=0) == {1: plain}


def test_figures_are_those_of_the_fewest_and_the_most_shots_and_what_they_gain() -> None:
    labels, gold = list(LABELS), [row["label"] for row in TEST]
    wrong = [labels[(labels.index(one) + 1) % len(labels)] for one in gold]
    fewest, most = [*gold[:3], *wrong[3:]], [*gold[:9], *wrong[9:]]
    sample = np.stack([FAMILY.statistics(gold, answers, labels) for answers in (fewest, most)], axis=1)
    figures = {one.name: one.score(sample) for one in PromptingEvaluation.figures(FAMILY)}
    assert figures["accuracy_with_fewest_shots"] == pytest.approx(3 / len(gold))
    assert figures["accuracy_with_most_shots"] == pytest.approx(9 / len(gold))
    assert figures["accuracy_gained_by_shots"] == pytest.approx(6 / len(gold))
    assert len(figures) == 3 * len(FAMILY.metrics)


def test_calibration_is_zhaos_diagonal_matrix() -> None:
    random = np.random.default_rng(0)
    scores, empty = random.normal(size=4), random.normal(size=(3, 4))
    chances = np.mean([np.exp(row) / np.exp(row).sum() for row in empty], axis=0)
    weighted = np.diag(1 / chances) @ (np.exp(scores) / np.exp(scores).sum())
    ours = np.exp(calibrated(scores, list(empty)))
    np.testing.assert_allclose(ours / ours.sum(), weighted / weighted.sum(), rtol=1e-12)


def test_prompts_longer_than_the_positions_are_refused_with_numbers(untrained: Path) -> None:
    message = (
        r"4 shots make prompts of up to \d+ tokens, and stage 'general' reads at most 96; "
        r"at most [1-3] shots fit. Lower"
    )
    with pytest.raises(RecipeError, match=message):
        PromptingEvaluation(tokens=16).answers(untrained, FAMILY, TRAIN, TEST, seed=0, stage="general")
    with pytest.raises(RecipeError, match="even a prompt without examples does not fit"):
        PromptingEvaluation().answers(untrained, FAMILY, TRAIN, [{"text": "log " * 200, "label": "xml"}], seed=0)


def test_what_cannot_be_prompted_is_refused(
    untrained: Path, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    config = BertConfig(
        vocab_size=512, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
    )
    build_network(ModelRecord(head=MaskedLMHead()), config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(RecipeError, match="the head masked_lm, which does not predict next tokens"):
        open_language_model(tmp_path)
    same: list[dict[str, Any]] = [{"text": "a", "label": label} for label in ("好", "坏")]
    with pytest.raises(DataError, match="the same tokens as '坏'|the same tokens as '好'"):
        PromptingEvaluation().answers(untrained, FAMILY, same, same, seed=0)
