"""NEZHA's attention in float64, token by token, by the paper's equations (Wei et al. 2019, §2.2)."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.nezha import NezhaConfig, NezhaForMaskedLM, NezhaModel, register_auto_classes
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.vocabulary import Field, Signal
from tests.reference.masked_text import build, masked_batch

WIDTH, HEADS, LENGTH = 24, 3, 11


def network(**dims: int) -> NezhaModel:
    config = NezhaConfig(
        vocab_size=50, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=32, **dims
    )
    torch.manual_seed(1)
    built = NezhaModel(config).double().eval()
    with torch.no_grad():
        for value in built.parameters():
            value.add_(torch.randn_like(value) * 0.2)
    return built


def by_the_paper(states: Tensor, layer: torch.nn.Module, kept: int) -> np.ndarray:
    """z_i = Σ_j α_ij (x_j W_V + a_ij), α_ij ∝ exp((x_i W_Q) · (x_j W_K + a_ij) / √d), over the first `kept` tokens."""
    size = WIDTH // HEADS
    query, key, value = (
        (states @ projection.weight.T + projection.bias).numpy().reshape(LENGTH, HEADS, size)
        for projection in (layer.query, layer.key, layer.value)
    )
    result = np.zeros((LENGTH, HEADS, size))
    for head in range(HEADS):
        for i in range(LENGTH):
            relative = np.zeros((kept, size))
            for j in range(kept):
                for k in range(size // 2):
                    angle = (j - i) / 10000 ** (2 * k / size)
                    relative[j, 2 * k], relative[j, 2 * k + 1] = math.sin(angle), math.cos(angle)
            scores = (key[:kept, head] + relative) @ query[i, head] / math.sqrt(size)
            weights = np.exp(scores - scores.max())
            result[i, head] = (weights / weights.sum()) @ (value[:kept, head] + relative)
    return result.reshape(LENGTH, WIDTH)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@torch.no_grad()
def test_attention_is_that_of_the_equations(implementation: str) -> None:
    built = network()
    built.set_attn_implementation(implementation)
    layer = built.encoder.layer[1].attention.self
    seen: dict[str, Tensor] = {}
    layer.register_forward_hook(lambda _, arguments, output: seen.update(states=arguments[0], context=output[0]))
    ids, mask = torch.randint(5, 50, (2, LENGTH)), torch.ones(2, LENGTH, dtype=torch.long)
    mask[1, 8:] = 0
    built(input_ids=ids, attention_mask=mask)
    for row, kept in enumerate((LENGTH, 8)):
        expected = by_the_paper(seen["states"][row], layer, kept)
        np.testing.assert_allclose(seen["context"][row, :kept].numpy(), expected[:kept], atol=2e-6)


@torch.no_grad()
def test_only_distances_matter() -> None:
    """A text after padding has the states that it has at the beginning of a row, also beyond any length."""
    built = network()
    ids = torch.randint(5, 50, (1, 700))
    moved = torch.cat([torch.zeros(1, 9, dtype=torch.long), ids], dim=1)
    mask = (torch.arange(709) >= 9).long()[None]
    plain, shifted = built(input_ids=ids).last_hidden_state, built(input_ids=moved, attention_mask=mask)
    torch.testing.assert_close(shifted.last_hidden_state[:, 9:], plain, atol=1e-4, rtol=0)
    turned = built(input_ids=ids.flip(1)).last_hidden_state.flip(1)
    assert (turned - plain).abs().max() > 0.01, "the order of the tokens matters"


@torch.no_grad()
def test_the_head_reads_it_as_the_whole_network_does(tokenizer: PreTrainedTokenizerFast) -> None:
    head, batch = MaskedLMHead(), masked_batch(tokenizer)
    built = build(head, "nezha", tokenizer)
    assert isinstance(built, NezhaForMaskedLM)
    theirs = built(input_ids=batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK]).logits.flatten(0, 1)
    ours = head.signals(built, batch, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    torch.testing.assert_close(ours, theirs[batch[Field.MASKED_POSITIONS]], atol=1e-5, rtol=0)


@torch.no_grad()
def test_a_saved_folder_is_opened_as_it_was(tmp_path: Path) -> None:
    register_auto_classes()
    built = network().float()
    built.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(opened, NezhaModel)
    ids = torch.randint(5, 50, (2, LENGTH))
    assert torch.equal(built(input_ids=ids).last_hidden_state, opened(input_ids=ids).last_hidden_state)


def test_heads_of_odd_width_and_a_number_of_positions_are_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(RecipeError, match="a head is 9 wide, and functional relative positions need pairs"):
        Transformer(architecture="nezha", dims={"hidden_size": 27, "num_attention_heads": 3}).config(tokenizer, 64)
    with pytest.raises(ValueError, match="nezha has relative positions and no maximum length; leave positions out"):
        Transformer(architecture="nezha", positions=128)
