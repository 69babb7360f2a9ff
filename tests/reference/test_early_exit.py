"""Exits after every layer: scores, the loss of PABEE, and layers that are not computed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pyarrow import parquet
from torch import Tensor, nn
from transformers import BertConfig, PreTrainedModel

from pipelines.errors import DataError, RecipeError
from pipelines.judging.evaluations.answer_operations import count_operations
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import ModelRecord, build_network, open_model
from pipelines.models.text_network import needs_its_head, output_kind
from pipelines.networks.sequence_classifier import pool
from pipelines.parts.heads.early_exit_classification import EXIT_LOGITS, EarlyExitClassificationHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.exit_cross_entropy import ExitCrossEntropy
from pipelines.recipe.job import Runtime
from pipelines.serving.answering.answerer import Answerer
from pipelines.serving.answering.inference import open_predictor
from pipelines.task_families import TaskFamily
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from pipelines.vocabulary import Field, Signal
from tests.pipelines.training.small_recipe import CLASSIFY, masked_lm_stage, recipe_of
from tests.steps import job_of, library_of, plan_of

LAYERS, CLASSES = 4, 3
IDS = torch.randint(5, 60, (6, 9), generator=torch.Generator().manual_seed(1))
MASK = torch.ones_like(IDS)
MASK[2:, 7:] = 0
BATCH = {Field.INPUT_IDS: IDS, Field.ATTENTION_MASK: MASK}


def record(confidence: float) -> ModelRecord:
    head = EarlyExitClassificationHead(confidence=confidence)
    return ModelRecord(head=head, family=TaskFamily.default(), labels=("a", "b", "c"))


def network_of(confidence: float) -> PreTrainedModel:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=LAYERS, num_attention_heads=2, intermediate_size=32
    )
    network = build_network(record(confidence), config)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 0.3)
    return network.eval()


@torch.no_grad()
def all_logits(network: PreTrainedModel, ids: Tensor = IDS, mask: Tensor = MASK) -> Tensor:
    """[layers, B, C], from the states of the plain backbone."""
    states = network.base_model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    classifiers = [*network.exits, network.classifier]  # type: ignore[misc]
    return torch.stack([one(pool(state, mask, "mean")) for one, state in zip(classifiers, states[1:], strict=True)])


def computed_layers(network: PreTrainedModel, ids: Tensor, mask: Tensor) -> tuple[int, Tensor]:
    """Number of layers that `network` computes for a batch, and its scores."""
    calls: list[nn.Module] = []
    layers = network.base_model.get_submodule("encoder.layer").children()
    hooks = [layer.register_forward_hook(lambda module, *_: calls.append(module)) for layer in layers]
    with torch.inference_mode():
        logits = network(input_ids=ids, attention_mask=mask).logits
    for hook in hooks:
        hook.remove()
    return len(calls), logits


@pytest.mark.parametrize("confidence", [0.4, 0.55, 0.7, 0.9])
def test_an_answer_is_that_of_the_first_layer_that_is_sure(confidence: float) -> None:
    network = network_of(confidence)
    logits = all_logits(network)
    sure = logits.softmax(-1).amax(-1) >= confidence
    sure[-1] = True
    first = sure.int().argmax(0)
    expected = logits[first, torch.arange(len(IDS))]
    count, together = computed_layers(network, IDS, MASK)
    torch.testing.assert_close(together, expected, atol=1e-5, rtol=1e-5)
    assert count == int(first.max()) + 1, "layers are computed until all have their answers"
    for row in range(len(IDS)):
        length = int(MASK[row].sum())
        count, alone = computed_layers(network, IDS[row : row + 1, :length], MASK[row : row + 1, :length])
        assert count == int(first[row]) + 1
        torch.testing.assert_close(alone[0], expected[row], atol=1e-5, rtol=1e-5)


def test_thresholds_leave_and_keep_layers() -> None:
    counts = [computed_layers(network_of(one), IDS[:1], MASK[:1])[0] for one in (0.34, 1.0)]
    assert counts == [1, LAYERS]


def test_with_confidence_1_all_layers_are_computed_where_a_probability_is_rounded_to_1() -> None:
    network = network_of(1.0)
    with torch.no_grad():
        network.get_parameter("exits.0.bias").add_(torch.tensor([200.0, 0.0, 0.0]))
    expected = all_logits(network)
    assert (expected[0].softmax(-1).amax(-1) == 1).all()
    count, logits = computed_layers(network, IDS, MASK)
    assert count == LAYERS
    torch.testing.assert_close(logits, expected[-1], atol=1e-5, rtol=1e-5)


def test_in_training_every_layer_is_computed_and_its_loss_is_weighted_by_its_number() -> None:
    network, head = network_of(0.4), EarlyExitClassificationHead(confidence=0.4)
    signals = head.signals(network, BATCH, frozenset({EXIT_LOGITS, Signal.LOGITS}))
    expected = all_logits(network)
    torch.testing.assert_close(signals[EXIT_LOGITS], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(signals[Signal.LOGITS], expected[-1], atol=1e-5, rtol=1e-5)
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    step = TrainingStep({**BATCH, Field.LABELS: labels}, signals, network, lambda *_: {})
    loss = ExitCrossEntropy().loss(step)["exit_cross_entropy"]
    by_hand = sum((j + 1) * nn.functional.cross_entropy(expected[j].double(), labels) for j in range(LAYERS)) / 10
    assert float(loss.detach()) == pytest.approx(float(by_hand), rel=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert all(one.weight.grad is not None for one in network.exits)  # type: ignore[union-attr]


def test_a_saved_folder_opens_with_its_exits_and_no_runtime_takes_it(tmp_path: Path) -> None:
    network = network_of(0.55)
    network.save_pretrained(tmp_path)
    again = open_model(tmp_path, "cpu").network.eval()
    assert computed_layers(again, IDS, MASK)[0] == computed_layers(network, IDS, MASK)[0]
    torch.testing.assert_close(computed_layers(again, IDS, MASK)[1], computed_layers(network, IDS, MASK)[1])
    assert needs_its_head(tmp_path)
    with pytest.raises(DataError, match=r"early_exit_classification\) leaves out layers for texts that it is sure of"):
        output_kind(tmp_path)


def test_a_backbone_whose_layers_cannot_be_left_is_refused() -> None:
    from transformers import BartConfig

    from pipelines.networks import register

    register()
    with pytest.raises(RecipeError, match="the layers of the backbone bart cannot be left one by one"):
        EarlyExitClassificationHead().build(BartConfig(), None)


RECIPE = recipe_of(
    "leaving",
    "arXiv:2004.12993",
    masked_lm_stage(tokens=2048, positions=32, batch_tokens=512),
    CLASSIFY,
    """\
  leaving:
    like: classify
    start: classify
    head: {name: early_exit_classification, confidence: 0.3}
    objective: exit_cross_entropy
    budget: {epochs: 2}
""",
)


def test_a_stage_trains_its_exits_and_answers_by_them(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    plan = plan_of(library_of(tmp_path, leaving=RECIPE), "leaving", sources)
    folders = {step.fingerprint: tmp_path / step.name for step in plan.steps}
    for step in plan.steps:
        run(job_of(step, folders, tables, tmp_path / step.name, Runtime(log_every=1)))
    opened = open_model(tmp_path / "leaving", "cpu")
    assert opened.record.head.name == "early_exit_classification"
    key = "train/exit_cross_entropy"
    losses = [line[key] for line in read_metrics(tmp_path / "leaving" / METRICS) if key in line]
    assert losses[-1] < losses[0]
    rows = parquet.read_table(tables["test"]).to_pylist()[:8]
    answerer = Answerer(tmp_path / "leaving", opened=opened)
    logits = answerer.class_logits(rows)
    labels = opened.record.labels
    assert answerer.answer(rows) == [labels[index] for index in logits.argmax(1)]
    predicted = open_predictor(tmp_path / "leaving").predict([row["text"] for row in rows])
    assert predicted.argmax(1).tolist() == logits.argmax(1).tolist()
    # a threshold that every layer reaches: one of two is computed, and the operations fall
    assert count_operations(tmp_path / "leaving", rows) < 0.75 * count_operations(tmp_path / "classify", rows)
