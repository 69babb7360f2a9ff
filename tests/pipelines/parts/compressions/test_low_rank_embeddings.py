"""A table of low rank is the nearest one, its bytes fall with the rank, and a folder opens to the same states."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.factored_embedding import FactoredEmbedding
from pipelines.networks.stored_size import StoredSize
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.compressions.group_quantization import GroupQuantization
from pipelines.parts.compressions.low_rank_embeddings import LowRankEmbeddings
from tests.pipelines.parts.compressions.test_feed_forward_widths import states
from tests.pipelines.parts.compressions.test_select_layers import body

IDS = torch.arange(40)


def test_the_product_is_the_best_of_its_rank() -> None:
    table = torch.nn.Embedding(40, 16, padding_idx=0)
    left, values, right = torch.linalg.svd(table.weight.detach().double(), full_matrices=False)
    best = (left[:, :5] * values[:5]) @ right[:5]
    made = FactoredEmbedding.nearest(table, 5)
    torch.testing.assert_close(made(IDS).double(), best, rtol=1e-4, atol=1e-4)
    assert made.vectors.weight.shape == (40, 5) and made.vectors.padding_idx == 0
    assert all(one.requires_grad for one in made.parameters())


def test_a_table_of_that_rank_changes_nothing(tokenizer: PreTrainedTokenizerFast) -> None:
    network = body("bert", tokenizer).double()
    table = network.get_input_embeddings()
    width = table.embedding_dim
    with torch.no_grad():
        table.weight[:, width // 2 :] = table.weight[:, : width // 2]
    before = states(network)
    result, change = LowRankEmbeddings(share=0.5).shrink(network)
    assert change == {"embeddings.word_embeddings": {"rank": width // 2}}
    torch.testing.assert_close(states(result), before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "nezha", "xlnet"])
def test_a_saved_network_opens_to_the_same_states(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network = body(architecture, tokenizer)
    result, change = LowRankEmbeddings(share=0.25).shrink(network)
    drawn = torch.get_rng_state()
    again = LowRankEmbeddings(share=0.25).rebuild(body(architecture, tokenizer), change)
    again.load_state_dict(result.state_dict())
    assert torch.equal(states(again), states(result))
    torch.set_rng_state(drawn)
    other = body(architecture, tokenizer)
    drawn = torch.get_rng_state()
    LowRankEmbeddings(share=0.25).rebuild(other, change)
    assert torch.equal(torch.get_rng_state(), drawn), "opening a folder draws nothing"


def test_few_bits_follow_it(tokenizer: PreTrainedTokenizerFast) -> None:
    network, _ = LowRankEmbeddings(share=0.5).shrink(body("bert", tokenizer))
    before = states(network)
    packed, change = GroupQuantization(bits=8).shrink(network)
    assert {"embeddings.word_embeddings.vectors", "embeddings.word_embeddings.projection"} <= set(change)
    assert (states(packed) - before).norm() < 0.05 * before.norm()


def test_the_expected_bytes_are_a_share(tokenizer: PreTrainedTokenizerFast) -> None:
    assert LowRankEmbeddings(share=0.25).size_after(StoredSize(100, 10, 20, 5)) == StoredSize(25, 10, 20, 5)


def test_networks_without_a_table_of_their_own_are_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    counted = AutoModel.from_config(AwdLstm().tiny().config(tokenizer, 16))
    with pytest.raises(RecipeError, match="awd_lstm has no whole table of word embeddings"):
        LowRankEmbeddings().choose(counted, None)
    twice, _ = LowRankEmbeddings().shrink(body("bert", tokenizer))
    with pytest.raises(RecipeError, match="bert has no whole table"):
        LowRankEmbeddings().choose(twice, None)
    masked = AutoModelForMaskedLM.from_config(body("bert", tokenizer).config)
    with pytest.raises(RecipeError, match=r"is also cls\.predictions\.decoder\.weight, the output of this network"):
        LowRankEmbeddings().choose(masked, None)
