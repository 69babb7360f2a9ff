"""Encoders that several tasks share: a bidirectional GRU against its equations in float64; equal sizes in recipe `use`;
one encoder below all lines of recipes `gensen` and `use`."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.networks.bigru import BigruConfig, BigruModel, register_auto_classes
from pipelines.networks.several_heads import SeveralHeads
from pipelines.recipe.lines import line_views
from pipelines.recipe.load import Library
from pipelines.recipe.profiles import smoke
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field
from tests.steps import RECIPES

Vector = NDArray[np.float64]
SOURCE_IDS = Field.of_rows("source_ids")
PAIRS = Task(TaskFamily.model_validate("pair_classification"), ("no", "yes"))


def gru(weights: dict[str, Vector], suffix: str, inputs: Vector) -> Vector:
    """[L, H]: the states of one direction over `inputs` [L, …]; torch's gates are in the order r, z, n."""
    into, back, bias, bias_back = (
        weights[f"layers.0.{one}_l0{suffix}"] for one in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    state, states = np.zeros(back.shape[1]), []
    for one in inputs:
        read, kept = np.split(into @ one + bias, 3), np.split(back @ state + bias_back, 3)
        reset, update = (1 / (1 + np.exp(-(read[gate] + kept[gate]))) for gate in (0, 1))
        state = update * state + (1 - update) * np.tanh(read[2] + reset * kept[2])
        states.append(state)
    return np.stack(states)


@torch.no_grad()
def test_both_directions_compute_their_equations_whatever_the_padding() -> None:
    torch.manual_seed(0)
    config = BigruConfig(vocab_size=20, hidden_size=6, embedding_size=4, input_dropout=0.0, pad_token_id=0)
    network = BigruModel(config).double()
    network.train(False)
    ids = torch.tensor([[3, 8, 5, 9], [4, 7, 0, 0]])
    states = network(ids, (ids != 0).long()).last_hidden_state.numpy()
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    for row, text in enumerate(([3, 8, 5, 9], [4, 7])):
        inputs = weights["embeddings.weight"][text]
        forward, backward = gru(weights, "", inputs), gru(weights, "_reverse", inputs[::-1])[::-1]
        assert states[row, : len(text)] == pytest.approx(np.concatenate([forward, backward], axis=1), abs=1e-12)
    assert not states[1, 2:].any()
    bound = 3**-0.5
    gates = torch.cat([one.flatten() for one in network.layers.parameters()])
    assert float(gates.abs().max()) <= bound < 1.2 * float(gates.abs().max())


def test_plain_transformers_opens_its_folder(tmp_path: Path) -> None:
    register_auto_classes()
    torch.manual_seed(0)
    network = BigruModel(BigruConfig(vocab_size=20, hidden_size=6, embedding_size=4, num_hidden_layers=2))
    network.save_pretrained(tmp_path)
    again = AutoModel.from_pretrained(tmp_path)
    assert isinstance(again, BigruModel) and all(isinstance(one, torch.nn.GRU) for one in again.layers)
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in network.state_dict().items())


def heads_of(recipe: str, stage: str, tokenizer: PreTrainedTokenizerFast) -> SeveralHeads:
    """The network of a stage of several lines, at the size of smoke runs."""
    chosen = smoke(Library(RECIPES).load(recipe)).stages[stage]
    assert chosen.backbone is not None
    networks: dict[str, PreTrainedModel] = {}
    for name, view in line_views(chosen).items():
        assert view.head is not None
        config = chosen.backbone.config(tokenizer, chosen.budget.length)
        networks[name] = view.head.build(config, PAIRS if view.head.reads else None)
    return SeveralHeads(next(iter(networks.values())).config, networks)


@pytest.mark.parametrize(
    ("recipe", "stage"), [("gensen", "general"), ("use", "general"), ("use", "bilstm"), ("use", "averaging")]
)
def test_every_line_trains_the_same_encoder(recipe: str, stage: str, tokenizer: PreTrainedTokenizerFast) -> None:
    chosen = smoke(Library(RECIPES).load(recipe)).stages[stage]
    network = heads_of(recipe, stage, tokenizer)
    ids = torch.randint(5, 100, (4, 7), generator=torch.Generator().manual_seed(0))
    batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: torch.ones_like(ids), SOURCE_IDS: ids, Field.TARGET_IDS: ids}
    table = cast("PreTrainedModel", network.base_model).get_input_embeddings()
    assert isinstance(table, torch.nn.Embedding)
    for name, view in line_views(chosen).items():
        assert view.head is not None
        network.zero_grad()
        required = frozenset({one for objective in view.objective for one in objective.needs_signals})
        signals = view.head.signals(network.head(name), cast("dict[Field, object]", batch), required)
        torch.autograd.backward([value.float().sum() for value in signals.values()])
        assert table.weight.grad is not None and table.weight.grad[ids.flatten()].any(), name
        others = [other for other in network.head_names if other != name]
        touched = [one for other in others for one in network.head(other).parameters() if one.grad is not None]
        assert not any(one.grad.any() for one in touched if one.grad is not None), f"{name} trains another head"


def test_the_encoders_that_are_compared_have_as_many_weights(tokenizer: PreTrainedTokenizerFast) -> None:
    stages = Library(RECIPES).load("use").stages
    sizes = {}
    for stage in ("general", "bilstm"):
        backbone = stages[stage].backbone
        assert backbone is not None
        network = AutoModel.from_config(backbone.config(tokenizer, 128))
        above = [name for name, _ in network.named_parameters() if "embedding" not in name and "pool" not in name]
        sizes[stage] = sum(network.get_parameter(name).numel() for name in above)
    assert sizes["general"] == pytest.approx(sizes["bilstm"], rel=0.02), sizes
