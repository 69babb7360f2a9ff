"""A network without neurons that did nothing computes what it computed with them."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.projections import axis_of, width_of
from pipelines.parts.architectures import Architecture
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.compressions.feed_forward_widths import FeedForwardWidths, feed_forward_layers
from tests.pipelines.parts.compressions.test_select_layers import body


def widths(network: PreTrainedModel) -> list[int]:
    return [width_of(inner, inputs=False) for inner, _ in feed_forward_layers(network).values()]


@torch.no_grad()
def states(network: PreTrainedModel) -> torch.Tensor:
    ids = torch.randint(5, 200, (2, 12), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": ids, **({"decoder_input_ids": ids} if network.config.is_encoder_decoder else {})}
    result: torch.Tensor = network(**inputs).last_hidden_state
    return result


@pytest.mark.parametrize(
    "architecture", [one.name for one in Architecture.all() if all(names.feed_forward for names in one.stacks.values())]
)
def test_neurons_without_weights_go_first_and_nothing_changes(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    network = body(architecture, tokenizer).double()
    (size,) = set(widths(network))  # GPT's inner size is four times the width, whatever a recipe says
    with torch.no_grad():
        for inner, outer in feed_forward_layers(network).values():
            for module, inputs in ((inner, False), (outer, True)):
                axis = axis_of(module, inputs=inputs)
                module.weight.index_fill_(axis, torch.arange(1, size, 2), 0)  # type: ignore[operator, union-attr]
    before = states(network)
    result, change = FeedForwardWidths(share=0.5).shrink(network)
    assert set(widths(result)) == {size // 2} and all(one == {"width": size // 2} for one in change.values())
    torch.testing.assert_close(states(result), before, rtol=1e-12, atol=1e-12)
    # opened again: the shapes of the record, for the saved weights
    again = FeedForwardWidths(share=0.5).rebuild(body(architecture, tokenizer).double(), change)
    again.load_state_dict(result.state_dict())
    assert torch.equal(states(again), states(result))


def test_all_neurons_are_no_change_and_one_is_left(tokenizer: PreTrainedTokenizerFast) -> None:
    assert FeedForwardWidths(share=1.0).shrink(body("bert", tokenizer)).change == {}
    assert widths(FeedForwardWidths(share=0.001).shrink(body("bert", tokenizer)).network) == [1] * 4


def test_a_backbone_without_such_layers_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    network = AutoModel.from_config(AwdLstm().tiny().config(tokenizer, 16))
    with pytest.raises(RecipeError, match="no feed-forward layers are known of the backbone awd_lstm.*bert"):
        FeedForwardWidths().choose(network, None)
