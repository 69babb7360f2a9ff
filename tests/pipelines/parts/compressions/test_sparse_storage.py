"""Pruned weights take fewer bytes of a file, and are exactly those of before when it is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.models.opening import count_weights
from pipelines.networks.packed_codes import pack_codes, unpack_codes
from pipelines.networks.sparse_weights import SparseLinear
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions.magnitude_pruning import MagnitudePruning
from pipelines.parts.compressions.sparse_storage import SparseStorage
from tests.pipelines.parts.compressions.test_select_layers import body


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000])
def test_unpacking_is_the_exact_inverse_of_packing(count: int) -> None:
    bits = (torch.rand(1, count, generator=torch.Generator().manual_seed(count)) < 0.4).to(torch.uint8)
    packed = pack_codes(bits, 1)
    assert packed.dtype is torch.uint8 and packed.shape[1] == -(-count // 8)
    assert torch.equal(unpack_codes(packed, 1, count), bits)
    nine = torch.tensor([[1, 0, 0, 1, *[0] * 4, 1]], dtype=torch.uint8)
    assert pack_codes(nine, 1)[0].tolist() == [9, 1]


@pytest.mark.parametrize("architecture", [one.name for one in Architecture.all() if one.name != "xlnet"])
@torch.no_grad()
def test_a_file_has_the_bytes_of_what_is_left_and_opens_to_the_same_weights(
    architecture: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    network, _ = MagnitudePruning(share=0.9).shrink(body(architecture, tokenizer))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    weights = count_weights(network)
    network.save_pretrained(tmp_path / "whole")
    ids = torch.randint(5, 200, (2, 12), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if network.config.is_encoder_decoder else {})}
    states = network(**inputs).last_hidden_state
    result, change = SparseStorage().shrink(network)
    result.save_pretrained(tmp_path / "sparse")
    assert count_weights(result) == weights and torch.equal(result(**inputs).last_hidden_state, states)

    again = SparseStorage().rebuild(body(architecture, tokenizer), change)
    assert not again.load_state_dict(load_file(tmp_path / "sparse" / "model.safetensors"), strict=False).unexpected_keys
    assert torch.equal(again(**inputs).last_hidden_state, states)
    for name, values in change.items():
        layer = again.base_model.get_submodule(name)
        assert isinstance(layer, SparseLinear) and values == {"zeros": int((layer.weight == 0).sum())}
        assert layer.weight.numel() == before[f"{name}.weight"].numel()

    whole, sparse = ((tmp_path / kind / "model.safetensors").stat().st_size for kind in ("whole", "sparse"))
    size = sum(before[f"{name}.weight"].numel() for name in change)
    bits = sum(8 * -(-before[f"{name}.weight"].numel() // 8) for name in change)
    left = sum(int(before[f"{name}.weight"].count_nonzero()) for name in change)
    # the header names two tensors instead of one for each matrix
    assert whole - sparse == pytest.approx(4 * size - bits / 8 - 4 * left, abs=200 * len(change))
    assert whole - sparse > 0.8 * 4 * size - 200 * len(change)


def test_matrices_that_would_not_shrink_stay(tokenizer: PreTrainedTokenizerFast) -> None:
    network = body("bert", tokenizer)
    with pytest.raises(RecipeError, match="more than one in 32 weights .*; prune single weights in a stage before"):
        SparseStorage().choose(network, None)
    with torch.no_grad():
        first, second = network.encoder.layer[0].output.dense.weight, network.encoder.layer[1].output.dense.weight
        first.view(-1)[: first.numel() // 32] = 0  # as many bits as before
        second.view(-1)[: second.numel() // 32 + 1] = 0
    assert list(SparseStorage().choose(network, None)) == ["encoder.layer.1.output.dense"]


def test_a_damaged_file_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    network, _ = SparseStorage().shrink(MagnitudePruning(share=0.5).shrink(body("bert", tokenizer)).network)
    weights = network.state_dict()
    values = "encoder.layer.0.output.dense.values"
    with pytest.raises(RuntimeError, match="layer.0.output.dense: 1023 values for 1024 weights that are not zero"):
        network.load_state_dict({**weights, values: weights[values][:-1]}, strict=False)
    bits = "encoder.layer.0.output.dense.nonzero"
    with pytest.raises(RuntimeError, match="layer.0.output.dense: 255 bytes of bits for 2048 weights"):
        network.load_state_dict({**weights, bits: weights[bits][:-1]}, strict=False)
    assert network.load_state_dict({}, strict=False).missing_keys.count(values) == 1
