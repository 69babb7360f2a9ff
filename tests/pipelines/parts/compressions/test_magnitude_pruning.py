"""Which weights become zero, and when."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import AutoModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.masked_weights import KeptZeros, zero_smallest
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.compressions.magnitude_pruning import MagnitudePruning
from tests.pipelines.parts.compressions.test_select_layers import body


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_the_smallest_of_a_matrix_become_zero(share: float) -> None:
    weight = torch.randn(13, 7, generator=torch.Generator().manual_seed(0))
    before = weight.double().numpy().copy()
    zero_smallest(weight, share)
    count = round(share * before.size)
    expected = before.copy().ravel()
    expected[np.argsort(np.abs(expected))[:count]] = 0
    np.testing.assert_array_equal(weight.double().numpy().ravel(), expected)


def test_of_equal_weights_no_more_than_the_share_become_zero() -> None:
    weight = torch.ones(10, 10)
    zero_smallest(weight, 0.25)
    assert int((weight == 0).sum()) == 25
    zero_smallest(weight, 0.2)
    assert int((weight == 0).sum()) == 25, "what is zero stays zero"


@pytest.mark.parametrize("architecture", [one.name for one in Architecture.all() if one.name != "xlnet"])
def test_every_matrix_of_every_layer_has_its_share(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network = body(architecture, tokenizer)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    result, change = MagnitudePruning(share=0.4).shrink(network)
    assert change and all(values == {"zeros": 0.4} for values in change.values())
    pruned = {f"{name}.weight" for name in change}
    stacks = tuple(next(one for one in Architecture.all() if one.name == architecture).stacks)
    for name, value in result.state_dict().items():
        if name in pruned:
            assert int((value == 0).sum()) == round(0.4 * value.numel()), name
        else:
            assert torch.equal(value, before[name]), name
            assert value.ndim < 2 or not name.startswith(stacks) or "relative_attention_bias" in name, name


def test_a_module_that_is_zero_at_first_is_left_out(tokenizer: PreTrainedTokenizerFast) -> None:
    network = body("bert", tokenizer)
    torch.nn.init.zeros_(network.encoder.layer[0].output.dense.weight)
    change = MagnitudePruning().choose(network, None)
    assert "encoder.layer.0.output.dense" not in change and "encoder.layer.1.output.dense" in change


def test_a_backbone_without_layers_of_matrices_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    network = AutoModel.from_config(AwdLstm().tiny().config(tokenizer, 16))
    with pytest.raises(RecipeError, match="magnitude_pruning: the backbone awd_lstm has no layers of matrices"):
        MagnitudePruning().choose(network, None)


def test_zeros_grow_along_the_cubic_schedule(tokenizer: PreTrainedTokenizerFast) -> None:
    part = MagnitudePruning(share=0.6, gradually=0.5, updates=5)
    network, change = part.shrink(body("bert", tokenizer))
    weight = network.encoder.layer[0].intermediate.dense.weight
    assert part.complete_after == 0.5 and not (weight == 0).any(), "none before the first step"
    keep = part.constraint(network, change)
    seen = set[int]()
    for step in range(1, 21):
        with torch.no_grad():
            weight.add_(0.01)  # as an optimizer that knows nothing of the zeros
        keep(step / 20)
        zero = (weight == 0).flatten().nonzero().flatten().tolist()
        t = min(int(5 * (step / 20) / 0.5), 5) / 5
        assert len(zero) == round((0.6 * (1 - (1 - t) ** 3)) * weight.numel()), step
        assert seen <= set(zero), "a weight that is zero stays zero"
        seen = set(zero)


def test_a_mask_is_what_a_resumed_stage_would_take_for_it() -> None:
    weights = torch.tensor([[1.0, 0.0, -2.0, 3.0]])
    keep = KeptZeros([weights])
    weights.copy_(torch.tensor([[0.0, 5.0, -2.0, 3.0]]))  # the first became zero by chance
    keep(0.25)
    assert weights.tolist() == [[0.0, 0.0, -2.0, 3.0]]
    weights.add_(1)
    keep(0.25)
    assert weights.tolist() == [[0.0, 0.0, -1.0, 4.0]]
