"""The studied Transformer: BERT itself where it is BERT, and else the equations of its papers in float64."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel, BertConfig, BertModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.nezha import NezhaConfig, NezhaModel
from pipelines.networks.studied_transformer import (
    KINDS,
    StudiedTransformerConfig,
    StudiedTransformerForMaskedLM,
    StudiedTransformerModel,
    register_auto_classes,
)
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.vocabulary import Field, Signal
from tests.reference.masked_text import build, masked_batch

WIDTH, HEADS, LENGTH = 24, 3, 11
DIMS = {
    "vocab_size": 50,
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "intermediate_size": 32,
}


def network(kind: str = "learned", scaled: bool = True) -> StudiedTransformerModel:
    """A network far from its initial weights, in which all of attention matters."""
    torch.manual_seed(1)
    built = StudiedTransformerModel(StudiedTransformerConfig(**DIMS, position_kind=kind, scaled_products=scaled))
    with torch.no_grad():
        for value in built.parameters():
            value.add_(torch.randn_like(value) * 0.2)
    return built.double().eval()


def rows() -> dict[str, Tensor]:
    """Two rows, the second with padding."""
    mask = torch.ones(2, LENGTH, dtype=torch.long)
    mask[1, 8:] = 0
    types = (torch.arange(LENGTH) > 5).long().expand(2, -1)
    return {
        "input_ids": torch.randint(5, 50, (2, LENGTH), generator=torch.Generator().manual_seed(2)),
        "attention_mask": mask,
        "token_type_ids": types,
    }


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@torch.no_grad()
def test_scaled_with_learned_positions_it_is_bert(implementation: str) -> None:
    built, bert = network(), BertModel(BertConfig(**DIMS)).double().eval()
    bert.load_state_dict(built.state_dict())  # the same names too
    for one in (built, bert):
        one.set_attn_implementation(implementation)
    shifted = rows() | {"position_ids": torch.arange(LENGTH).expand(2, -1) + 40}
    for inputs in (rows(), shifted):
        expected = bert(**inputs).last_hidden_state
        torch.testing.assert_close(built(**inputs).last_hidden_state, expected, atol=1e-12, rtol=0)


@torch.no_grad()
def test_without_positions_it_is_bert_whose_positions_are_zero() -> None:
    built, bert = network("none"), BertModel(BertConfig(**DIMS)).double().eval()
    missing = bert.load_state_dict(built.state_dict(), strict=False).missing_keys
    assert missing == ["embeddings.position_embeddings.weight"]
    bert.embeddings.position_embeddings.weight.zero_()
    torch.testing.assert_close(built(**rows()).last_hidden_state, bert(**rows()).last_hidden_state)
    order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(3))
    ids = rows()["input_ids"]
    permuted, plain = built(ids[:, order]).last_hidden_state, built(ids).last_hidden_state[:, order]
    torch.testing.assert_close(permuted, plain)


@torch.no_grad()
def test_sines_and_cosines_are_those_of_the_paper() -> None:
    """§3.5, of the size of a table of std 0.02: that times √2, since the mean square of a sine is a half."""
    built, bert = network("sinusoidal"), BertModel(BertConfig(**DIMS)).double().eval()
    bert.load_state_dict(built.state_dict(), strict=False)
    table = np.zeros((512, WIDTH))
    for position in range(512):
        for k in range(WIDTH // 2):
            angle = position / 10000 ** (2 * k / WIDTH)
            table[position, 2 * k], table[position, 2 * k + 1] = math.sin(angle), math.cos(angle)
    assert math.isclose(float(np.sqrt((table**2).mean())), math.sqrt(0.5), rel_tol=1e-9)
    bert.embeddings.position_embeddings.weight.copy_(torch.from_numpy(table) * 0.02 * math.sqrt(2))
    for inputs in (rows(), rows() | {"position_ids": torch.arange(LENGTH).expand(2, -1) + 300}):
        expected = bert(**inputs).last_hidden_state
        torch.testing.assert_close(built(**inputs).last_hidden_state, expected, atol=2e-6, rtol=0)


@torch.no_grad()
def test_relative_positions_are_those_of_nezha() -> None:
    built, nezha = network("relative"), NezhaModel(NezhaConfig(**DIMS)).double().eval()
    nezha.load_state_dict(built.state_dict())
    torch.testing.assert_close(built(**rows()).last_hidden_state, nezha(**rows()).last_hidden_state)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_unscaled_products_are_scaled_ones_of_queries_times_the_root_of_a_heads_width(
    kind: str, implementation: str
) -> None:
    unscaled, scaled = network(kind, scaled=False), network(kind)
    assert not torch.allclose(unscaled(**rows()).last_hidden_state, scaled(**rows()).last_hidden_state)
    for layer in scaled.encoder.layer:
        for value in layer.attention.self.query.parameters():
            value.mul_(math.sqrt(WIDTH / HEADS))
    for one in (unscaled, scaled):
        one.set_attn_implementation(implementation)
    torch.testing.assert_close(unscaled(**rows()).last_hidden_state, scaled(**rows()).last_hidden_state)


@torch.no_grad()
def test_the_head_reads_it_as_the_whole_network_does(tokenizer: PreTrainedTokenizerFast) -> None:
    head, batch = MaskedLMHead(), masked_batch(tokenizer)
    built = build(head, "studied_transformer", tokenizer)
    assert isinstance(built, StudiedTransformerForMaskedLM)
    theirs = built(input_ids=batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK]).logits.flatten(0, 1)
    ours = head.signals(built, batch, frozenset({Signal.MASKED_LOGITS}))[Signal.MASKED_LOGITS]
    torch.testing.assert_close(ours, theirs[batch[Field.MASKED_POSITIONS]], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_a_saved_folder_is_opened_as_it_was(kind: str, tmp_path: Path) -> None:
    register_auto_classes()
    built = network(kind, scaled=False).float()
    built.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(opened, StudiedTransformerModel)
    assert torch.equal(built(**rows()).last_hidden_state, opened(**rows()).last_hidden_state)


def test_what_it_cannot_be_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    studied = Transformer(architecture="studied_transformer")

    def refusal(**dims: object) -> str:
        with pytest.raises(RecipeError) as caught:
            studied.model_copy(update={"dims": dims}).config(tokenizer, 64)
        return str(caught.value)

    assert "position_kind: 'rotary' is none of learned, sinusoidal, relative, none" in refusal(position_kind="rotary")
    assert "need pairs of elements" in refusal(position_kind="relative", hidden_size=27, num_attention_heads=3)
    assert "has no key 'scaled_product'. Did you mean 'scaled_products'" in refusal(scaled_product=False)
    assert "scaled_products: 'never' is neither true nor false" in refusal(scaled_products="never")
