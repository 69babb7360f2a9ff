"""The configuration of every Transformer body, and what is refused."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from transformers import AutoModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.transformer import Transformer
from pipelines.vocabulary import Ability

each = pytest.mark.parametrize("architecture", [one.name for one in Architecture.all()])


@each
def test_its_ids_and_vocabulary_are_the_tokenizers(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    config = Transformer(architecture=architecture).tiny().config(tokenizer, 32)
    assert config.pad_token_id == tokenizer.pad_token_id
    # the defaults of a published checkpoint name ids that stand for other words here
    assert config.eos_token_id == tokenizer.eos_token_id
    assert getattr(config, "bos_token_id", None) == tokenizer.bos_token_id
    assert config.vocab_size % 64 == 0 and 0 <= config.vocab_size - len(tokenizer) < 64
    if config.is_encoder_decoder:
        begin = {"t5": tokenizer.pad_token_id, "bart": tokenizer.sep_token_id}[architecture]
        assert config.decoder_start_token_id == begin
    told = config.to_diff_dict()
    assert not {"id2label", "label2id", "num_labels"} & set(told), "labels are a head's"


@each
@torch.no_grad()
def test_it_reads_its_longest_row_and_no_longer_one(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    part = Transformer(architecture=architecture).tiny()
    if part.max_length is not None:
        part = part.model_copy(update={"positions": 24})
        assert part.max_length == 24
        with pytest.raises(RecipeError, match="sequences of 25 tokens do not fit 24 positions"):
            part.config(tokenizer, 25)
    body = AutoModel.from_config(part.config(tokenizer, 24)).eval()
    ids = torch.full((2, 24), int(tokenizer.sep_token_id))
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if body.config.is_encoder_decoder else {})}
    assert tuple(body(**inputs).last_hidden_state.shape) == (2, 24, 32)
    table = [p for name, p in body.named_parameters() if "position" in name or name.startswith("wpe")]
    assert bool(table) == (part.max_length is not None)


def test_robertas_positions_begin_behind_padding(tokenizer: PreTrainedTokenizerFast) -> None:
    part = Transformer(architecture="roberta", positions=24).tiny()
    assert part.config(tokenizer, 24).max_position_embeddings == 24 + tokenizer.pad_token_id + 1


def test_building_a_configuration_draws_no_random_number(tokenizer: PreTrainedTokenizerFast) -> None:
    before = torch.get_rng_state()
    for architecture in Architecture.all():
        Transformer(architecture=architecture).tiny().config(tokenizer, 8)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("ability", Ability)
def test_an_ability_is_offered_by_whom_it_should_be(ability: Ability) -> None:
    like_bert = {"nezha", "studied_transformer", "albert", "bert"}
    encoders = like_bert | {"roberta", "electra"}
    expected = {
        Ability.BIDIRECTIONAL: encoders | {"mobilebert", "modernbert", "xlnet"},
        Ability.CAUSAL: {"gpt2", "openai-gpt"},
        Ability.TWO_STREAM: {"xlnet"},
        Ability.MEMORY: {"xlnet"},
        Ability.ENCODER_DECODER: {"bart", "t5"},
        Ability.DISCRIMINATOR: {"electra"},
        Ability.ONE_STACK: encoders | {"gpt2", "mobilebert", "modernbert", "openai-gpt", "xlnet"},
        Ability.LAYERED: encoders - {"albert"} | {"gpt2", "mobilebert", "modernbert"},
        Ability.WITHIN_DOCUMENTS: encoders | {"gpt2", "modernbert"},
        Ability.ATTENTION_SCORES: {"mobilebert", "bert", "roberta", "electra"},
        Ability.VISIBILITY: encoders,
        Ability.SEGMENT_PAIRS: like_bert,
    }
    assert {one.name for one in Architecture.all() if ability in one.offers} == expected.get(ability, set())


@pytest.mark.parametrize(
    ("architecture", "dims", "said"),
    [
        ("bert", {"hiden_size": 8}, "Did you mean 'hidden_size'"),
        ("t5", {"hidden_size": 8}, "a t5 configuration has no key 'hidden_size'"),
        ("bert", {"vocab_size": 8}, "'vocab_size' cannot be set here"),
        ("roberta", {"max_position_embeddings": 8}, "'max_position_embeddings' cannot be set here"),
        ("bert", {"hidden_size": 30}, "30.*not a multiple of the number of attention heads"),
        ("gpt2", {"n_embd": 30}, "must be divisible by num_heads"),
        ("xlnet", {"d_model": 30}, "d_model"),
        ("bert", {"hidden_size": "wide"}, "expected int"),
        ("bert", {"hidden_act": "nope"}, "nope"),
    ],
)
def test_dimensions_that_cannot_be_are_refused(
    architecture: str, dims: dict[str, int | str], said: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    with pytest.raises(RecipeError, match=said) as told:
        Transformer(architecture=architecture, dims=dims).config(tokenizer, 8)
    assert str(told.value).startswith("backbone.dims: ") and "\n" not in str(told.value)


@pytest.mark.parametrize("architecture", ["xlnet", "t5"])
def test_relative_positions_take_no_number_of_them(architecture: str) -> None:
    with pytest.raises(ValidationError, match="relative positions"):
        Transformer(architecture=architecture, positions=64)
