"""BERT2BERT against transformers' own decoder: where it begins, its loss, and what it writes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertConfig, EncoderDecoderModel, PreTrainedTokenizerFast, XLNetConfig
from transformers import EncoderDecoderConfig as Both

from pipelines.errors import RecipeError
from pipelines.networks.copied_decoder import CopiedDecoder
from pipelines.parts.heads.copied_decoder import CopiedDecoderHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.sequence_to_sequence import SequenceToSequence
from pipelines.vocabulary import Field, Signal

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


def network() -> CopiedDecoder:
    torch.manual_seed(0)
    config = BertConfig(vocab_size=64, initializer_range=0.3, **SIZES)
    head = CopiedDecoderHead()
    built = head.build(config, None)
    assert isinstance(built, CopiedDecoder)
    head.begin(built)
    return built.eval()


def batch() -> dict[Field, torch.Tensor]:
    random = np.random.default_rng(0)
    ids = torch.from_numpy(random.integers(5, 64, size=(3, 7)))
    ids[:, 0] = 2
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    targets = torch.from_numpy(random.integers(5, 64, size=(3, 4)))
    targets[2, 2:] = -100
    return {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask, Field.TARGET_IDS: targets}


def test_the_decoder_begins_as_a_copy_with_new_cross_attention() -> None:
    built = network()
    ours, theirs = built.decoder.state_dict(), built.base_model.state_dict()
    assert all(torch.equal(ours[name], value) for name, value in theirs.items())
    new = ours.keys() - theirs.keys()
    assert new and all("crossattention" in name for name in new)
    assert all(ours[name].data_ptr() != value.data_ptr() for name, value in theirs.items()), "copies, not the same"


def test_states_and_loss_are_those_of_transformers() -> None:
    built, given = network(), batch()
    of_decoder = BertConfig(vocab_size=64, initializer_range=0.3, is_decoder=True, add_cross_attention=True, **SIZES)
    reference = EncoderDecoderModel(Both.from_encoder_decoder_configs(built.config, of_decoder)).eval()
    reference.encoder.load_state_dict(built.base_model.state_dict(), strict=False)
    reference.decoder.bert.load_state_dict(built.decoder.state_dict())
    shifted = torch.cat([given[Field.INPUT_IDS][:, :1], given[Field.TARGET_IDS][:, :-1].clamp(min=0)], 1)
    expected = reference(
        input_ids=given[Field.INPUT_IDS],
        attention_mask=given[Field.ATTENTION_MASK],
        decoder_input_ids=shifted,
        output_hidden_states=True,
    ).decoder_hidden_states[-1]
    signals = CopiedDecoderHead().signals(built, given, frozenset({Signal.TARGET_LOGITS}))
    logits = signals[Signal.TARGET_LOGITS]
    torch.testing.assert_close(logits, built.score(expected), atol=1e-4, rtol=1e-4)
    loss = SequenceToSequence().loss(TrainingStep(given, signals, built, lambda *_: {}))["sequence_to_sequence"]
    chances = logits.double().log_softmax(-1)
    kept = given[Field.TARGET_IDS] >= 0
    true = chances.gather(-1, given[Field.TARGET_IDS].clamp(min=0).unsqueeze(-1)).squeeze(-1)
    assert float(loss.detach()) == pytest.approx(-float(true[kept].mean().detach()), rel=1e-6)


@torch.no_grad()
def test_what_it_writes_is_the_most_probable_token_each_time(tokenizer: PreTrainedTokenizerFast) -> None:
    built, given = network(), batch()
    ids, mask, end = given[Field.INPUT_IDS], given[Field.ATTENTION_MASK], 9
    found = built.write(ids, mask, 6, end, 0, 60)
    for row in range(3):
        read = [2]
        while len(read) <= 6 and (len(read) == 1 or read[-1] != end):
            logits = built(ids[row : row + 1], mask[row : row + 1], torch.tensor([read]))[0, -1]
            read.append(int(logits[:60].argmax()))
        rest = found[row, len(read) - 1 :]
        assert found[row, : len(read) - 1].tolist() == read[1:] and not rest.any()


def test_a_body_without_cross_attention_is_refused() -> None:
    with pytest.raises(RecipeError, match="xlnet has no cross-attention, by which a decoder reads the encoder; use"):
        config = XLNetConfig(vocab_size=64, d_model=32, n_layer=1, n_head=2, d_inner=32)
        config._attn_implementation = "eager"
        CopiedDecoder(config)
