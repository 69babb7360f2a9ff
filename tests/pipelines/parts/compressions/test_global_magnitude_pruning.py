"""One threshold over all matrices: which weights become zero, when, and that they stay."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.global_masks import KeptZerosOfAll, zero_smallest_of_all
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.compressions import Change
from pipelines.parts.compressions.global_magnitude_pruning import GlobalMagnitudePruning
from tests.pipelines.parts.compressions.test_select_layers import body


def matrices(network: PreTrainedModel, change: Change) -> list[Tensor]:
    return [network.base_model.get_submodule(name).weight.detach() for name in change]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_the_smallest_of_all_become_zero(share: float) -> None:
    generator = torch.Generator().manual_seed(0)
    weights = [scale * torch.randn(rows, 7, generator=generator) for scale, rows in ((1.0, 13), (0.3, 5), (2.0, 9))]
    together = torch.cat([weight.double().flatten() for weight in weights]).numpy()
    expected = together.copy()
    expected[np.argsort(np.abs(together))[: round(share * together.size)]] = 0
    zero_smallest_of_all(weights, share)
    np.testing.assert_array_equal(torch.cat([weight.double().flatten() for weight in weights]).numpy(), expected)


def test_of_equal_weights_no_more_than_the_share_become_zero_and_those_stay() -> None:
    weights = [torch.ones(4, 5), torch.ones(2, 10)]
    zero_smallest_of_all(weights, 0.25)
    assert sum(int((weight == 0).sum()) for weight in weights) == 10
    zero_smallest_of_all(weights, 0.1)
    assert sum(int((weight == 0).sum()) for weight in weights) == 10


def test_matrices_of_small_weights_lose_more(tokenizer: PreTrainedTokenizerFast) -> None:
    network = body("bert", tokenizer)
    with torch.no_grad():
        network.encoder.layer[0].output.dense.weight.mul_(0.1)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    result, change = GlobalMagnitudePruning(share=0.4).shrink(network)
    zeros = {name: float((result.get_submodule(name).weight == 0).float().mean()) for name in change}
    whole = matrices(result, change)
    assert sum(int((one == 0).sum()) for one in whole) == round(0.4 * sum(one.numel() for one in whole))
    small = zeros.pop("encoder.layer.0.output.dense")
    assert small > 0.9 and max(zeros.values()) < 0.6
    threshold = max(
        float(before[f"{name}.weight"][result.get_submodule(name).weight == 0].abs().max()) for name in change
    )
    left = torch.cat([one[one != 0].abs() for one in whole])
    assert float(left.min()) >= threshold, "one threshold for all"
    pruned = {f"{name}.weight" for name in change}
    assert all(torch.equal(value, before[name]) for name, value in result.state_dict().items() if name not in pruned)
    assert all(values == {"zeros_of_all": 0.4} for values in change.values()), "the share, and no mask"


def test_zeros_grow_along_the_cubic_schedule(tokenizer: PreTrainedTokenizerFast) -> None:
    part = GlobalMagnitudePruning(share=0.6, gradually=0.5, updates=5)
    network, change = part.shrink(body("bert", tokenizer))
    weights = matrices(network, change)
    size = sum(weight.numel() for weight in weights)
    assert part.complete_after == 0.5 and all(bool(weight.all()) for weight in weights), "none before the first step"
    keep = part.constraint(network, change)
    seen = torch.zeros(size, dtype=torch.bool)
    for step in range(1, 21):
        for weight in weights:
            weight.add_(0.01)  # as an optimizer that knows nothing of the zeros
        keep(step / 20)
        zero = torch.cat([(weight == 0).flatten() for weight in weights])
        t = min(int(5 * (step / 20) / 0.5), 5) / 5
        assert int(zero.sum()) == round(0.6 * (1 - (1 - t) ** 3) * size), step
        assert bool(zero[seen].all()), "a weight that is zero stays zero"
        seen = zero


def test_a_mask_is_what_a_resumed_stage_would_take_for_it() -> None:
    weights = [torch.tensor([[1.0, 0.0]]), torch.tensor([[-2.0, 3.0]])]
    keep = KeptZerosOfAll(weights)
    weights[0].copy_(torch.tensor([[0.0, 5.0]]))  # the first became zero by chance
    keep(0.25)
    assert [one.tolist() for one in weights] == [[[0.0, 0.0]], [[-2.0, 3.0]]]
    for weight in weights:
        weight.add_(1)
    keep(0.75)
    assert [one.tolist() for one in weights] == [[[0.0, 0.0]], [[0.0, 4.0]]]


def test_a_backbone_without_layers_of_matrices_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    network = AutoModel.from_config(AwdLstm().tiny().config(tokenizer, 16))
    with pytest.raises(RecipeError, match="global_magnitude_pruning: the backbone awd_lstm has no layers of matrices"):
        GlobalMagnitudePruning().choose(network, None)
