"""GPT's layers, which normalise after each sub-layer: Hugging Face's own loss, and the paper's equations in float64
(Radford et al. 2018, §3.1, eq. 2)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu
from transformers import OpenAIGPTLMHeadModel, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.causal_lm import CausalLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.recipe.load import Library
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import documents
from tests.steps import RECIPES

WIDTH, HEADS, LENGTH = 32, 2, 48


@pytest.fixture(scope="module")
def batch(tokenizer: PreTrainedTokenizerFast) -> dict[Field, Tensor]:
    texts = sorted(documents("json"), key=len)[:5]
    rows = tokenizer(texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
    assert 0 in rows["attention_mask"]
    return {Field.INPUT_IDS: rows["input_ids"], Field.ATTENTION_MASK: rows["attention_mask"]}


@pytest.fixture
def network(tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    torch.manual_seed(0)
    backbone = Transformer.model_validate({"architecture": "openai-gpt", "positions": 64}).tiny()
    return CausalLMHead().build(backbone.config(tokenizer, LENGTH), None).eval()


def test_the_loss_and_its_gradient_are_hugging_faces_own(network: PreTrainedModel, batch: dict[Field, Tensor]) -> None:
    reference = OpenAIGPTLMHeadModel(network.config).eval()
    reference.load_state_dict(network.state_dict())
    ids, mask = batch[Field.INPUT_IDS], batch[Field.ATTENTION_MASK]
    expected = reference(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
    objective = CausalLM()
    signals = CausalLMHead().signals(network, batch, objective.needs_signals)
    loss = objective.loss(TrainingStep(batch, signals, network, lambda *_: {}))["causal_lm"]
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    loss.backward()
    expected.backward()
    for ours, its in zip(network.parameters(), reference.parameters(), strict=True):
        # sums over 200 tokens in another order
        torch.testing.assert_close(ours.grad, its.grad, atol=1e-6, rtol=1e-4)


def normalised(states: Tensor, gain: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    deviations = states - states.mean(-1, keepdim=True)
    return deviations / (deviations.square().mean(-1, keepdim=True) + epsilon).sqrt() * gain + bias


def attended(states: Tensor, weights: dict[str, Tensor]) -> Tensor:
    """[L, H]: each token reads itself and those before it."""
    query, key, value = (states @ weights["attn.c_attn.weight"] + weights["attn.c_attn.bias"]).split(WIDTH, dim=-1)
    rows = []
    for token in range(len(states)):
        parts = []
        for head in range(HEADS):
            of_head = slice(head * WIDTH // HEADS, (head + 1) * WIDTH // HEADS)
            scores = key[: token + 1, of_head] @ query[token, of_head] / math.sqrt(WIDTH / HEADS)
            parts.append(scores.softmax(0) @ value[: token + 1, of_head])
        rows.append(torch.cat(parts))
    return torch.stack(rows) @ weights["attn.c_proj.weight"] + weights["attn.c_proj.bias"]


@torch.no_grad()
def test_states_are_the_papers_equation_two(network: PreTrainedModel, batch: dict[Field, Tensor]) -> None:
    for parameter in network.parameters():  # gains and biases other than 1 and 0
        parameter.add_(0.1 * torch.randn_like(parameter))
    network.double()
    weights, epsilon = dict(network.base_model.state_dict()), network.config.layer_norm_epsilon
    ids = batch[Field.INPUT_IDS][-1, :12]
    states = weights["tokens_embed.weight"][ids] + weights["positions_embed.weight"][: len(ids)]
    for number in range(network.config.n_layer):
        layer = {name.removeprefix(f"h.{number}."): value for name, value in weights.items() if f"h.{number}." in name}
        middle = normalised(states + attended(states, layer), layer["ln_1.weight"], layer["ln_1.bias"], epsilon)
        inner = gelu(middle @ layer["mlp.c_fc.weight"] + layer["mlp.c_fc.bias"], approximate="tanh")
        outer = inner @ layer["mlp.c_proj.weight"] + layer["mlp.c_proj.bias"]
        states = normalised(middle + outer, layer["ln_2.weight"], layer["ln_2.bias"], epsilon)
    signals = CausalLMHead().signals(network, {Field.INPUT_IDS: ids[None]}, frozenset({Signal.NEXT_LOGITS}))
    torch.testing.assert_close(signals[Signal.NEXT_LOGITS][0], states @ weights["tokens_embed.weight"].T)


def test_a_saved_folder_is_one_of_transformers(
    network: PreTrainedModel, batch: dict[Field, Tensor], tmp_path: Path
) -> None:
    network.save_pretrained(tmp_path)
    opened = OpenAIGPTLMHeadModel.from_pretrained(tmp_path).eval()
    inputs = {"input_ids": batch[Field.INPUT_IDS], "attention_mask": batch[Field.ATTENTION_MASK]}
    with torch.no_grad():
        assert torch.equal(opened(**inputs).logits, network(**inputs).logits)


def test_the_recipe_compares_both_positions_of_normalisation() -> None:
    stages = Library(RECIPES).load("gpt").stages
    before, after = stages["general"], stages["post_norm"]
    assert before.backbone is not None and after.backbone is not None
    assert (before.backbone.label, after.backbone.label) == ("transformer gpt2", "transformer openai-gpt")
    assert after.model_copy(update={"backbone": before.backbone, "like": before.like}) == before
