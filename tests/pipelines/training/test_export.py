"""What a stage leaves: the weights of its best validation, and of tied weights one copy that stays tied."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as parquet
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.parts.distributions import Distribution
from pipelines.training.assembly.export import export, final_network
from pipelines.training.checkpoints.best_weights import BestWeights
from pipelines.training.checkpoints.folder import Checkpoints
from pipelines.training.metrics_log import MetricsLog, read_metrics
from tests.pipelines.training.conftest import Trained

EMBEDDINGS = "bert.embeddings.word_embeddings.weight"
DECODER = "cls.predictions.decoder.weight"
MONITOR = "validation/accuracy"


@pytest.fixture
def network(tokenizer: PreTrainedTokenizerFast) -> BertForMaskedLM:
    """A tiny language model whose word embeddings are its output layer too."""
    torch.manual_seed(0)
    return BertForMaskedLM(
        BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=32,
        )
    )


def validated(best: BestWeights, score: float) -> None:
    """Tell `best` of a validation, as a trainer does."""
    trainer = SimpleNamespace(callback_metrics={MONITOR: torch.tensor(score)}, is_global_zero=True, global_step=1)
    best.on_validation_end(cast(Any, trainer), cast(Any, None))


def moved_to(network: BertForMaskedLM, value: float) -> None:
    """Other weights, which a step of training would have made."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.fill_(value)


def kept(network: BertForMaskedLM, scores: list[float], folder: Path) -> dict[str, Tensor]:
    """The weights that are left of a training with these validations; after each, all weights are its number."""
    best = BestWeights(folder, network, Distribution.default(), MONITOR)
    for number, score in enumerate(scores):
        moved_to(network, float(number))
        validated(best, score)
    checkpoints = Checkpoints(folder / "checkpoints", MetricsLog(folder / "metrics.jsonl", 1, 1))
    return dict(final_network(network, best, Distribution.default(), checkpoints).state_dict())


@pytest.mark.parametrize(("scores", "number"), [([0.5, 0.9, 0.7], 1), ([0.5, 0.6, 0.7], 2), ([0.9, 0.9, 0.1], 0)])
def test_the_weights_of_the_best_validation_are_left_and_of_two_the_earlier(
    scores: list[float], number: int, network: BertForMaskedLM, tmp_path: Path
) -> None:
    found = kept(network, scores, tmp_path)
    assert all(bool((value == number).all()) for name, value in found.items() if value.is_floating_point())


def test_a_trained_classifier_answers_as_at_its_best_validation(trained: Trained) -> None:
    scores = [line[MONITOR] for line in read_metrics(trained.folder("classify") / METRICS) if MONITOR in line]
    assert scores[-1] < max(scores), "the last validation must not be the best, or this shows nothing"
    opened = open_model(trained.folder("classify"), "cpu")
    rows = parquet.read_table(trained.tables["validation"]).to_pylist()
    texts = [row["text"] for row in rows]
    batch = opened.tokenizer(texts, truncation=True, max_length=48, padding=True, return_tensors="pt")
    with torch.no_grad():
        answers = opened.network(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.argmax(-1)
    right = [opened.record.labels[answer] == row["label"] for answer, row in zip(answers.tolist(), rows, strict=True)]
    assert sum(right) / len(right) == pytest.approx(max(scores), abs=1e-6)


def test_tied_weights_are_one_tensor_before_and_after(
    network: BertForMaskedLM, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    best = BestWeights(tmp_path, network, Distribution.default(), MONITOR)
    validated(best, 0.5)
    expected = network.state_dict()[EMBEDDINGS].clone()
    moved_to(network, 1.0)
    checkpoints = Checkpoints(tmp_path / "checkpoints", MetricsLog(tmp_path / "metrics.jsonl", 1, 1))
    left = final_network(network, best, Distribution.default(), checkpoints)
    assert tied(left) and torch.equal(left.state_dict()[EMBEDDINGS], expected)
    export(left, tokenizer, 32, tmp_path / "out")
    saved = load_file(tmp_path / "out" / "model.safetensors")
    assert EMBEDDINGS in saved and DECODER not in saved, "one tensor is saved once"
    opened = AutoModelForMaskedLM.from_pretrained(tmp_path / "out")
    assert opened.config.tie_word_embeddings and tied(opened), "whoever trains it on would train two tables of words"
    assert torch.equal(opened.state_dict()[DECODER], expected)


def tied(network: Any) -> bool:
    """Whether the output layer reads the very tensor of the word embeddings."""
    return bool(network.get_output_embeddings().weight is network.get_input_embeddings().weight)
