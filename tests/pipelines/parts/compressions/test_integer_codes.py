"""Codes of 3 bits, too: exact packing, integers in memory, and the bits that a stage before has trained with."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.pytorch_utils import Conv1D

from pipelines.errors import RecipeError
from pipelines.models.opening import count_weights
from pipelines.networks.coded_weights import CodedWeight, coded
from pipelines.networks.group_quantization import dequantize, matrix, pack, quantize
from pipelines.networks.packed_codes import pack_codes, unpack_codes
from pipelines.networks.stored_size import StoredSize
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions import Compression
from pipelines.parts.compressions.integer_codes import IntegerCodes
from tests.pipelines.parts.compressions.test_select_layers import body
from tests.reference.test_head_importance import classifier, examples

WIDTHS = (8, 4, 3, 2)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("columns", [1, 2, 3, 8, 33, 64])
def test_unpacking_is_the_exact_inverse_of_packing(bits: int, columns: int) -> None:
    generator = torch.Generator().manual_seed(columns)
    codes = torch.randint(0, 2**bits, (7, columns), generator=generator, dtype=torch.uint8)
    packed = pack_codes(codes, bits)
    assert packed.dtype is torch.uint8 and packed.shape == (7, -(-columns * bits // 8))
    assert torch.equal(unpack_codes(packed, bits, columns), codes)
    text = "".join(f"{byte:08b}"[::-1] for byte in packed[0].tolist())
    assert [int(text[bits * n : bits * (n + 1)][::-1], 2) for n in range(columns)] == codes[0].tolist(), "without gaps"
    if bits != 3:
        assert torch.equal(packed, pack(codes, bits)), "as group_quantization packs them"


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("groups", [1, 7, 50])
@pytest.mark.parametrize("layer", [nn.Linear(33, 50), nn.Linear(33, 50, bias=False), Conv1D(50, 33)], ids=str)
@torch.no_grad()
def test_a_layer_computes_with_the_values_of_its_codes(bits: int, groups: int, layer: nn.Linear | Conv1D) -> None:
    made = coded(layer, bits, groups)
    values = dequantize(*quantize(matrix(layer).contiguous(), bits, groups), groups)
    torch.testing.assert_close(made.values(), values, rtol=1e-5, atol=1e-6)
    for rows in (5, 50):  # few inputs, and more than there are weights
        inputs = torch.randn(2, rows, 33, generator=torch.Generator().manual_seed(0))
        expected = inputs.double() @ values.double().T + (0 if layer.bias is None else layer.bias.double())
        torch.testing.assert_close(made(inputs).double(), expected, rtol=0, atol=2e-5)
    assert made.weight.dtype is torch.int8, "a byte for each weight"


@torch.no_grad()
def test_an_embedding_gives_the_rows_of_its_codes() -> None:
    table = nn.Embedding(50, 12)
    made = coded(table, 3, 10)
    ids = torch.tensor([[0, 7, 49], [3, 3, 12]])
    expected = dequantize(*quantize(table.weight, 3, 10), 10)[ids]
    torch.testing.assert_close(made(ids), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("bits", [8, 3])
@pytest.mark.parametrize("architecture", [one.name for one in Architecture.all()])
@torch.no_grad()
def test_every_architecture_is_packed_and_built_again(
    bits: int, architecture: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    network, blank = body(architecture, tokenizer), body(architecture, tokenizer)
    part = Compression.model_validate({"name": "integer_codes", "bits": bits, "embedding_bits": None})
    before = count_weights(network)
    kept = sum(one.numel() for name, one in network.named_parameters() if one.ndim < 2)
    result, change = part.shrink(network)
    for parameter in blank.parameters():
        parameter.zero_()
    again = part.rebuild(blank, change)
    result.save_pretrained(tmp_path)
    assert not again.load_state_dict(load_file(tmp_path / "model.safetensors"), strict=False).unexpected_keys
    ids = torch.randint(5, 200, (2, 12), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if result.config.is_encoder_decoder else {})}
    assert torch.equal(result(**inputs).last_hidden_state, again(**inputs).last_hidden_state)
    assert count_weights(result) == before
    layers = [one for one in result.modules() if isinstance(one, CodedWeight)]
    packed = sum(one.weight.numel() for one in layers)
    files = {name: value for name, value in load_file(tmp_path / "model.safetensors").items() if "codes" in name}
    assert sum(value.numel() for value in files.values()) == sum(
        len(one.weight) * -(-one.weight.shape[1] * bits // 8) for one in layers
    )
    assert packed > 0 and kept > 0


def test_bits_that_are_mixed_are_between_the_two_given(tokenizer: PreTrainedTokenizerFast) -> None:
    network = classifier("bert", tokenizer).float()
    for choice in ("hessian", "error"):
        mixed = {"mean": 2.5, "between": [2, 3], "choice": choice}
        part = Compression.model_validate({"name": "integer_codes", "bits": mixed})
        assert part.needs_gradients == (choice == "hessian")
        change = part.choose(network, examples())
        layers = [{change[name]["bits"] for name in change if name.startswith(f"encoder.layer.{n}.")} for n in range(2)]
        assert sorted(layers, key=min) == [{2}, {3}]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bits": 5}, "8, 4, 3, 2 or 'trained'"),
        ({"bits": {"mean": 3, "between": [2, 3]}}, "a mean of 3 is not between 2 and 3"),
        ({"bits": {"mean": 5}}, "a mean of 5 is not between 2 and 4"),
        ({"bits": "trained", "groups": 1}, "bits: trained has the groups of the training"),
        ({"bits": "trained", "embedding_bits": 4}, "leave embedding_bits out"),
    ],
)
def test_what_does_not_fit_together_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Compression.model_validate({"name": "integer_codes", **options})


def test_a_record_is_read_again() -> None:
    for options in ({"bits": "trained"}, {"bits": {"mean": 2.5, "between": [2, 3]}}, {"bits": 3}):
        part = Compression.model_validate({"name": "integer_codes", **options})
        assert Compression.model_validate(part.model_dump(mode="json")) == part


def test_trained_bits_are_those_of_a_stage_that_trained_with_them(tokenizer: PreTrainedTokenizerFast) -> None:
    network = body("bert", tokenizer)
    with pytest.raises(RecipeError, match="no stage before has trained with rounded weights; give a number of bits"):
        IntegerCodes(bits="trained").choose(network, None)
    rounded = Compression.model_validate({"name": "rounded_training", "bits": 2, "groups": 4, "embedding_bits": 3})
    network, change = rounded.shrink(network)
    assert IntegerCodes(bits="trained").choose(network, None) == change
    with pytest.raises(RecipeError, match="has trained the weights as they are with few bits; write bits: trained"):
        IntegerCodes(bits=2).choose(network, None)


def test_bytes_of_trained_bits_are_those_of_the_training_and_at_most_so_many_without_it() -> None:
    size, stored = StoredSize(embeddings=100, attention=10, feed_forward=20, rest=5), IntegerCodes(bits="trained")
    for bits in (8, None):
        options = {"bits": 2, "embedding_bits": bits}
        rounded = Compression.model_validate({"name": "rounded_training", **options})
        expected = Compression.model_validate({"name": "integer_codes", **options}).size_after(size)
        assert stored.size_after_earlier(size, [rounded]) == expected
        assert expected.embeddings == (25 if bits else 100) and expected.attention < 1
    assert stored.size_after(size) == stored.size_after_earlier(size, []) == StoredSize(100, 2.5, 5, 5)
    assert IntegerCodes(bits=8).size_after_earlier(size, []) == StoredSize(25, 2.5, 5, 5)


def test_embeddings_that_are_the_output_too_are_refused_by_its_own_name(tokenizer: PreTrainedTokenizerFast) -> None:
    config = Transformer(architecture="gpt2").tiny().config(tokenizer, 16)
    network = AutoModelForCausalLM.from_config(config)
    with pytest.raises(RecipeError, match="compression integer_codes: .* set embedding_bits: null"):
        IntegerCodes().choose(network, None)


def test_codes_of_another_shape_are_refused() -> None:
    made = coded(nn.Linear(12, 10), 3, 2)
    weights = made.state_dict()
    with pytest.raises(RuntimeError, match=r"codes of the shape \(10, 4\), expected \(10, 5\)"):
        made.load_state_dict({**weights, "codes": weights["codes"][:, :-1]})
