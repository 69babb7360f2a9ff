"""What is known of an architecture is so: its names are those of the network that transformers builds."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerFast
from transformers.pytorch_utils import Conv1D

from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.transformer import Transformer
from pipelines.training.assembly.parameter_groups import _outermost_lists

LENGTH = 8
each = pytest.mark.parametrize("architecture", Architecture.all(), ids=lambda one: one.name)


def network_of(architecture: Architecture, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    config = Transformer(architecture=architecture).tiny().config(tokenizer, LENGTH)
    torch.manual_seed(0)
    network: PreTrainedModel = AutoModel.from_config(config)
    return network.eval()


def run(network: PreTrainedModel) -> None:
    ids = torch.arange(LENGTH)[None] + 5
    network(input_ids=ids, **({"decoder_input_ids": ids} if network.config.is_encoder_decoder else {}))


@each
def test_its_stacks_are_all_its_lists_of_layers(architecture: Architecture, tokenizer: PreTrainedTokenizerFast) -> None:
    network = network_of(architecture, tokenizer)
    lists = dict(_outermost_lists(network))
    assert list(architecture.stacks) == list(lists)
    for path, names in architecture.stacks.items():
        assert len(lists[path]) == getattr(network.config, names.count_key)
        # layers of a bottleneck compute at another width than that of the states
        width = getattr(network.config, "true_hidden_size", getattr(network.config, architecture.width))
        for layer in lists[path]:
            if names.feed_forward is not None:
                inner, outer = (layer.get_submodule(name) for name in names.feed_forward)
                assert isinstance(inner, (nn.Linear, Conv1D)) and isinstance(outer, (nn.Linear, Conv1D))
                assert sorted(inner.weight.shape) == sorted(outer.weight.shape) and width in inner.weight.shape
            for end in names.sub_layer_ends:
                assert isinstance(layer.get_submodule(end), nn.Dropout)
            for name in names.attention or ():
                assert isinstance(layer.get_submodule(name), nn.Linear)


@each
@torch.no_grad()
def test_the_projections_of_a_layer_are_those_of_its_attention(
    architecture: Architecture, tokenizer: PreTrainedTokenizerFast
) -> None:
    """The values of a head that are zero make its share of the output zero: what pruning a head relies on."""
    network = network_of(architecture, tokenizer)
    for path, names in architecture.stacks.items():
        for layer in network.get_submodule(path).children():
            if names.attention is None:
                continue
            value = layer.get_submodule(names.attention.value)
            assert isinstance(value, nn.Linear)
            size = value.out_features // network.config.num_attention_heads
            value.weight[:size] = 0
            if value.bias is not None:
                value.bias[:size] = 0
            read: list[torch.Tensor] = []
            output = layer.get_submodule(names.attention.output)
            with_hook = output.register_forward_pre_hook(lambda _, inputs, read=read: read.append(inputs[0]))
            run(network)
            with_hook.remove()
            assert bool((read[0][..., :size] == 0).all()) and bool((read[0][..., size:] != 0).any())


@each
@torch.no_grad()
def test_the_input_of_its_first_layer_is_the_sum_of_its_tables(
    architecture: Architecture, tokenizer: PreTrainedTokenizerFast
) -> None:
    network = network_of(architecture, tokenizer)
    tables = [network.get_submodule(path) for path in architecture.embedding_tables]
    assert tables[0] is network.get_input_embeddings()
    if architecture.embedding_sum is None:
        return
    read: dict[object, torch.Tensor] = {}
    for table in tables:
        table.register_forward_hook(lambda one, _, vectors: read.__setitem__(one, vectors))
    summed = network.get_submodule(architecture.embedding_sum)
    summed.register_forward_pre_hook(lambda _, inputs: read.__setitem__("sum", inputs[0]))
    run(network)
    used = [read[table] for table in tables if table in read]
    assert len(used) >= 2 and torch.allclose(torch.stack(torch.broadcast_tensors(*used)).sum(0), read["sum"])


@each
def test_its_normalisation_is_all_of_its_gains(architecture: Architecture, tokenizer: PreTrainedTokenizerFast) -> None:
    network = network_of(architecture, tokenizer)
    gains = {name.split(".")[-2] for name, value in network.named_parameters() if value.ndim == 1 and "weight" in name}
    assert gains == set(architecture.normalisation)


@each
def test_its_first_position_is_that_of_the_network(
    architecture: Architecture, tokenizer: PreTrainedTokenizerFast
) -> None:
    network = network_of(architecture, tokenizer)
    first = architecture.first_position(network.config)
    if architecture.positions is None:
        assert first == 0
        return
    table = network.get_submodule(architecture.embedding_tables[1])
    read: list[torch.Tensor] = []
    table.register_forward_hook(lambda _, __, vectors: read.append(vectors))
    run(network)
    # BART's table has two rows that no position has
    assert torch.equal(read[0].flatten(0, -2)[0], table.weight[first + getattr(table, "offset", 0)])


@each
def test_its_token_types_are_those_of_the_network(
    architecture: Architecture, tokenizer: PreTrainedTokenizerFast
) -> None:
    backbone = Transformer(architecture=architecture)
    key, usual = architecture.token_types
    table = next((one for one in architecture.embedding_tables if "token_type" in one), None)
    assert bool(usual) == (table is not None) and backbone.token_types == usual
    if table is not None:
        wide = backbone.model_copy(update={"dims": {key: 6}})
        assert wide.token_types == 6
        network = AutoModel.from_config(wide.tiny().config(tokenizer, LENGTH))
        assert network.get_submodule(table).num_embeddings == 6
        assert network_of(architecture, tokenizer).get_submodule(table).num_embeddings == usual


def test_a_wrong_name_says_which_one_is_close() -> None:
    with pytest.raises(ValueError, match="no architecture is called 'robrta'. Did you mean 'roberta'"):
        Transformer(architecture="robrta")
    assert Transformer().model_dump()["architecture"] == "bert", "what a recipe says is a name"


def test_a_network_that_is_not_of_transformers_has_none() -> None:
    assert Architecture.of({"model_type": "awd_lstm"}) is None
