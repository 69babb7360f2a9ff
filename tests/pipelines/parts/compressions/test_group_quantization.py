"""Weights of few bits: exact packing, bounded error, and who gets how many."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.pytorch_utils import Conv1D

from pipelines.errors import RecipeError
from pipelines.models.opening import count_weights
from pipelines.networks.group_quantization import (
    GroupQuantized,
    dequantize,
    group_of_rows,
    pack,
    quantize,
    quantized,
    unpack,
)
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions import Compression
from pipelines.parts.compressions.group_quantization import GroupQuantization, allocate
from tests.pipelines.parts.compressions.test_select_layers import body
from tests.reference.test_head_importance import classifier, examples

WIDTHS = (8, 4, 2)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("columns", [1, 3, 4, 33])
def test_unpacking_is_the_exact_inverse_of_packing(bits: int, columns: int) -> None:
    generator = torch.Generator().manual_seed(columns)
    codes = torch.randint(0, 2**bits, (7, columns), generator=generator, dtype=torch.uint8)
    packed = pack(codes, bits)
    assert packed.dtype is torch.uint8 and packed.shape == (7, -(-columns * bits // 8))
    assert torch.equal(unpack(packed, bits, columns), codes)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("groups", [1, 7, 50])
@pytest.mark.parametrize("scale", [1e-6, 0.05, 3000.0])
def test_the_error_is_half_a_step_at_most(bits: int, groups: int, scale: float) -> None:
    weight = scale * torch.randn(50, 33, generator=torch.Generator().manual_seed(0))
    weight[3:9] = 0.25 * scale  # rows of one value
    codes, step, minimum = quantize(weight, bits, groups)
    steps = step.float()[group_of_rows(50, groups), None]
    error = (dequantize(codes, step, minimum, groups) - weight).abs()
    assert bool((error <= steps / 2 + 1e-6 * scale).all())
    assert len(step) == len(minimum) == -(-50 // -(-50 // groups)) and step.dtype is torch.float16


def test_groups_of_their_own_range_are_nearer() -> None:
    weight = torch.randn(64, 64, generator=torch.Generator().manual_seed(0)) * torch.logspace(-2, 0, 64)[:, None]
    errors = [
        float((dequantize(*quantize(weight, 4, groups), groups) - weight).square().sum()) for groups in (1, 8, 64)
    ]
    assert errors == sorted(errors, reverse=True) and errors[2] < 0.2 * errors[0]


@pytest.mark.parametrize("layer", [nn.Linear(12, 10), nn.Linear(12, 10, bias=False), Conv1D(10, 12)], ids=str)
@torch.no_grad()
def test_a_packed_layer_computes_with_its_values_and_loads_them(layer: nn.Linear | Conv1D) -> None:
    packed = quantized(layer, 8, 10)
    inputs = torch.randn(5, 12, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(packed(inputs), layer(inputs), rtol=0, atol=0.02)
    other = quantized(Conv1D(10, 12) if isinstance(layer, Conv1D) else nn.Linear(12, 10, layer.bias is not None), 8, 10)
    assert not torch.equal(other(inputs), packed(inputs))
    other.load_state_dict(packed.state_dict())
    assert torch.equal(other(inputs), packed(inputs))
    assert sorted(packed.state_dict()) == sorted(
        ["codes", "minimum", "step", *(["bias"] if layer.bias is not None else [])]
    )


@pytest.mark.parametrize("architecture", [one.name for one in Architecture.all()])
@torch.no_grad()
def test_every_architecture_is_packed_and_built_again(
    architecture: str, tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    network, blank = body(architecture, tokenizer), body(architecture, tokenizer)
    part = Compression.model_validate({"name": "group_quantization", "bits": 8, "embedding_bits": None})
    before = count_weights(network)
    result, change = part.shrink(network)
    for parameter in blank.parameters():
        parameter.zero_()
    again = part.rebuild(blank, change)
    assert not again.load_state_dict(result.state_dict()).missing_keys
    ids = torch.randint(5, 200, (2, 12), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if result.config.is_encoder_decoder else {})}
    assert torch.equal(result(**inputs).last_hidden_state, again(**inputs).last_hidden_state)
    assert count_weights(result) == before and any(isinstance(one, GroupQuantized) for one in result.modules())
    result.save_pretrained(tmp_path)
    assert (
        tmp_path / "model.safetensors"
    ).stat().st_size < 0.85 * 4 * before  # XLNet's projections are no layers of their own


def test_bits_go_to_the_most_sensitive_layers_within_the_mean() -> None:
    sizes = {"a": 100, "b": 100, "c": 100, "d": 100}
    sensitivity = {"a": 0.1, "b": 3.0, "c": 0.2, "d": 1.0}
    assert allocate(sensitivity, sizes, 3, 2, 4) == {"a": 2, "b": 4, "c": 2, "d": 4}
    assert allocate(sensitivity, sizes, 2.4, 2, 4) == {"a": 2, "b": 2, "c": 2, "d": 2}
    assert allocate(sensitivity, sizes | {"b": 300}, 3, 2, 4) == {"a": 2, "b": 4, "c": 2, "d": 2}


def test_the_curvature_of_transposed_matrices_is_measured_too(tokenizer: PreTrainedTokenizerFast) -> None:
    network = classifier("gpt2", tokenizer).float()
    part = Compression.model_validate({"name": "group_quantization", "bits": {"mean": 3}})
    assert {values["bits"] for name, values in part.choose(network, examples()).items() if name[0] == "h"} == {2, 4}


@pytest.mark.parametrize("choice", ["error", "hessian"])
def test_both_choices_cost_the_same_bits(choice: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network = classifier("bert", tokenizer).float()
    part = Compression.model_validate(
        {"name": "group_quantization", "bits": {"mean": 3, "choice": choice}, "embedding_bits": 8}
    )
    assert part.needs_gradients == (choice == "hessian")
    change = part.choose(network, examples())
    layers = [{change[name]["bits"] for name in change if name.startswith(f"encoder.layer.{n}.")} for n in range(2)]
    assert sorted(layers, key=min) == [{2}, {4}]
    assert change["embeddings.word_embeddings"] == {"bits": 8, "groups": 128}
    sensitivities = [change[f"encoder.layer.{n}.output.dense"]["sensitivity"] for n in range(2)]
    assert sensitivities[layers.index({4})] == max(sensitivities)


def test_embeddings_that_are_the_output_too_are_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    config = Transformer(architecture="gpt2").tiny().config(tokenizer, 16)
    network = AutoModelForCausalLM.from_config(config)
    with pytest.raises(RecipeError, match="wte are also the output of this network; set embedding_bits: null"):
        GroupQuantization().choose(network, None)
    assert GroupQuantization(embedding_bits=None).choose(network, None)


def test_a_mean_that_is_one_width_is_refused() -> None:
    with pytest.raises(ValueError, match="write bits: 4"):
        Compression.model_validate({"name": "group_quantization", "bits": {"mean": 4}})
