"""A student made of its teacher's layers, in every architecture."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoModelForSeq2SeqLM, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions.select_layers import SelectLayers

FOUR = {"num_hidden_layers": 4, "n_layer": 4, "num_layers": 4, "num_decoder_layers": 2, "encoder_layers": 4}
UNLIKE = ("albert", "modernbert")
"""Architectures of one layer, and of a first layer that is unlike the others."""


def body(architecture: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    tiny = Transformer(architecture=architecture).tiny()
    dims = {key: FOUR.get(key, value) for key, value in tiny.dims.items()}
    config = tiny.model_copy(update={"dims": dims}).config(tokenizer, 16)
    config._attn_implementation = "eager"
    torch.manual_seed(0)
    return AutoModel.from_config(config).eval()


def layers(network: PreTrainedModel) -> list[torch.nn.ModuleList]:
    """The lists of layers, by the names that these architectures give them."""
    paths = ("encoder.layer", "h", "layer", "encoder.block", "decoder.block", "encoder.layers", "decoder.layers")
    modules = dict(network.named_modules())
    return [modules[path] for path in paths if path in modules]


@pytest.mark.parametrize("architecture", [one.name for one in Architecture.all() if one.name not in UNLIKE])
@torch.no_grad()
def test_it_is_the_body_of_that_many_layers_with_those_weights(
    architecture: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    teacher = body(architecture, tokenizer)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    student = SelectLayers(share=0.5).shrink(teacher).network.eval()
    for mine, theirs in zip(layers(student), layers(teacher), strict=True):
        kept = [1, 3] if len(theirs) == 4 else [1]
        assert len(mine) == len(kept)
        for new, old in enumerate(kept):
            wanted = theirs[old].state_dict()
            assert all(
                torch.equal(value, wanted[name]) for name, value in mine[new].state_dict().items() if name in wanted
            )
    for half in (student, getattr(student, "encoder", student), getattr(student, "decoder", student)):
        # T5's halves have configurations of their own, MobileBERT's encoder has none
        config = getattr(half, "config", student.config)
        decodes = half is getattr(student, "decoder", None) and config is not student.config
        assert config.num_hidden_layers == (1 if decodes else 2)
    # it is what the architecture itself would build: every weight finds its place, and the outputs agree
    student.save_pretrained(tmp_path)
    opened, unmatched = AutoModel.from_pretrained(tmp_path, attn_implementation="eager", output_loading_info=True)
    assert not any(unmatched[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = torch.randint(5, 200, (2, 12), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if student.config.is_encoder_decoder else {})}
    assert torch.equal(student(**inputs).last_hidden_state, opened(**inputs).last_hidden_state)
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items()), "the teacher changed"


def test_a_first_layer_that_is_unlike_the_others_is_refused_its_successor(tokenizer: PreTrainedTokenizerFast) -> None:
    """ModernBERT normalises the input of every layer but the first."""
    teacher = body("modernbert", tokenizer)
    with pytest.raises(RecipeError, match="has attn_norm.weight, and the one whose place .* choose the first layers"):
        SelectLayers(share=0.5).shrink(teacher)
    assert SelectLayers(share=0.5, which="first").shrink(teacher).network.config.num_hidden_layers == 2


def test_layers_that_share_their_weights_are_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(RecipeError, match="the backbone albert has no list of layers"):
        SelectLayers(share=0.5).shrink(body("albert", tokenizer))


@torch.no_grad()
def test_relative_positions_stay_though_their_layer_goes(tokenizer: PreTrainedTokenizerFast) -> None:
    teacher = body("t5", tokenizer)
    student = SelectLayers(share=0.5, which="last").shrink(teacher).network
    name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    assert torch.equal(student.state_dict()[name], teacher.state_dict()[name])


def test_modules_that_were_added_stay(tokenizer: PreTrainedTokenizerFast) -> None:
    teacher = body("bert", tokenizer)
    teacher.extra = torch.nn.Linear(2, 3)
    assert torch.equal(SelectLayers().shrink(teacher).network.extra.weight, teacher.extra.weight)


def test_the_student_generates(tokenizer: PreTrainedTokenizerFast) -> None:
    config = Transformer(architecture="t5").tiny().config(tokenizer, 16)
    student = SelectLayers(share=0.5).shrink(AutoModelForSeq2SeqLM.from_config(config)).network.eval()
    said = student.generate(torch.tensor([[7, 8, 9]]), max_new_tokens=4, do_sample=False)
    assert said.shape[0] == 1 and said[0, 0] == tokenizer.pad_token_id


def test_a_body_without_layers_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    network = body("bert", tokenizer)
    network.encoder = torch.nn.Identity()
    with pytest.raises(RecipeError, match="the backbone bert has no list of layers"):
        SelectLayers().shrink(network)
