"""Which neurons and layers may be removed, how many, and of which networks."""

from __future__ import annotations

import pytest
from transformers import AutoModel, AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.shape import NetworkShape
from pipelines.parts.backbones.awd_lstm import AwdLstm
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions.layer_pruning import LayerPruning
from pipelines.parts.compressions.neuron_pruning import NeuronPruning
from tests.pipelines.parts.compressions.test_feed_forward_widths import widths
from tests.pipelines.parts.compressions.test_select_layers import body
from tests.reference.test_head_importance import Examples, classifier, examples


@pytest.mark.parametrize("share", [0.001, 0.3, 0.75, 1.0])
def test_the_share_of_all_neurons_is_kept_and_one_in_each_layer(
    share: float, tokenizer: PreTrainedTokenizerFast
) -> None:
    network = classifier("bert", tokenizer)
    total = sum(widths(network))
    result, change = NeuronPruning(share=share, rounds=2).shrink(network, examples())
    assert sum(widths(result)) == max(2, round(total * share)) and min(widths(result)) >= 1
    assert bool(change) == (share < 1)


@pytest.mark.parametrize("part", [NeuronPruning(order="random"), LayerPruning(order="random")])
def test_a_random_order_is_drawn_by_the_seed_without_data(
    part: NeuronPruning | LayerPruning, tokenizer: PreTrainedTokenizerFast
) -> None:
    assert not part.needs_calibration and part.draws

    def kept(seed: int) -> object:
        network: PreTrainedModel = body("bert", tokenizer)
        calibration = Examples([], seed)
        return part._kept(network, calibration) if isinstance(part, LayerPruning) else part.choose(network, calibration)

    assert kept(0) == kept(0) and len({str(kept(seed)) for seed in range(8)}) > 1


def test_the_number_of_layers_is_that_of_the_share(tokenizer: PreTrainedTokenizerFast) -> None:
    result, change = LayerPruning(share=0.75, order="random").shrink(body("bert", tokenizer), Examples([]))
    assert result.config.num_hidden_layers == len(result.encoder.layer) == 3 and change == {}
    assert LayerPruning(share=0.01).shape_after(NetworkShape(layers=12)).layers == 1


def test_two_stacks_are_not_ranked_together(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(RecipeError, match="layer_pruning: layers are ranked in one stack, and the backbone t5 has 2"):
        LayerPruning().shrink(body("t5", tokenizer), examples())
    network = AutoModel.from_config(AwdLstm().tiny().config(tokenizer, 16))
    with pytest.raises(RecipeError, match="the backbone awd_lstm has none that is known; select_layers"):
        LayerPruning().shrink(network, examples())


def test_states_with_positions_first_have_no_importance_for_an_example(tokenizer: PreTrainedTokenizerFast) -> None:
    config = Transformer(architecture="xlnet").tiny().config(tokenizer, 16)
    config.num_labels = 3
    network = AutoModelForSequenceClassification.from_config(config).eval()
    with pytest.raises(RecipeError, match="the backbone xlnet do not have the examples of a batch first"):
        LayerPruning().shrink(network, examples())


def test_a_backbone_without_feed_forward_layers_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    network = AutoModel.from_config(AwdLstm().tiny().config(tokenizer, 16))
    with pytest.raises(RecipeError, match="compression neuron_pruning: no feed-forward layers .* awd_lstm.*bert"):
        NeuronPruning().choose(network, examples())
