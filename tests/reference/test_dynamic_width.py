"""Sub-networks of a network: their order, their loss, and that one that is cut out answers as it did inside (Hou et al.
2020, DynaBERT §2.1)."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from transformers import BertConfig, PreTrainedModel, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.models.opening import ModelRecord, build_network
from pipelines.networks.leading_widths import WidthLayer, at_width
from pipelines.networks.shape import NetworkShape
from pipelines.parts.backbones.transformer import Transformer
from pipelines.parts.compressions.leading_widths import LeadingWidths
from pipelines.parts.compressions.ordered_widths import OrderedWidths, layers_by_width, neuron_importance
from pipelines.parts.heads.dynamic_width_classification import (
    WIDTH_LOGITS,
    WIDTH_STATES,
    DynamicWidthClassificationHead,
)
from pipelines.parts.heads.early_exit_classification import EarlyExitClassificationHead
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.match_widths import MatchWidths
from pipelines.task_families import TaskFamily
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.compressions.test_select_layers import body
from tests.reference.test_head_importance import ARCHITECTURES, classifier, examples

SHARES = (0.25, 0.5, 1.0)


def gate(network: PreTrainedModel, layer: WidthLayer, heads: Tensor, neurons: Tensor) -> list[object]:
    """Multiply every head and neuron of a layer by a number of its own."""

    def by(values: Tensor) -> object:
        return lambda module, inputs: (inputs[0] * values, *inputs[1:])

    output = layer.heads.layer.get_submodule(layer.heads.output)
    hooks = ((output, heads.repeat_interleave(layer.heads.size)), (layer.outer, neurons))
    return [module.register_forward_pre_hook(by(values)) for module, values in hooks]  # type: ignore[arg-type]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.no_grad()
def test_an_ordered_network_computes_what_it_did(architecture: str, tokenizer: PreTrainedTokenizerFast) -> None:
    network, (ids, _) = classifier(architecture, tokenizer), examples().rows[0]
    before = network(input_ids=ids).logits
    with torch.enable_grad():
        order = OrderedWidths().choose(network, examples())
        ordered, change = OrderedWidths().shrink(network, examples())
    moved = [values for one in order.values() for values in one.values() if values != sorted(values)]
    assert moved and not change, "shapes stay: a folder needs no record of it"
    torch.testing.assert_close(ordered(input_ids=ids).logits, before, rtol=0, atol=1e-12)
    with torch.enable_grad():
        order = OrderedWidths().choose(ordered, examples())
    assert all(values == sorted(values) for one in order.values() for values in one.values()), "sorted by importance"


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_importance_of_a_neuron_is_the_sum_over_its_weights(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    network, calibration = classifier(architecture, tokenizer), examples()
    layers = layers_by_width(network, "ordered_widths")
    result = neuron_importance(network, layers, calibration)
    step = 1e-6
    for layer, importance in zip(layers, result, strict=True):
        inner, outer = layer.inner.weight, layer.outer.weight
        flipped = architecture == "gpt2"  # its linear layers hold [inputs, outputs]
        for neuron in (0, 3):
            expected = 0.0
            for ids, labels in calibration.rows:
                losses = []
                for scale in (1 + step, 1 - step):
                    with torch.no_grad():
                        kept = [inner.clone(), outer.clone()]  # type: ignore[operator]
                        (inner[:, neuron] if flipped else inner[neuron]).mul_(scale)  # type: ignore[index, union-attr]
                        (outer[neuron] if flipped else outer[:, neuron]).mul_(scale)  # type: ignore[index, union-attr]
                        losses.append(float(nn.functional.cross_entropy(network(input_ids=ids).logits, labels)))
                        inner.copy_(kept[0])  # type: ignore[operator]
                        outer.copy_(kept[1])  # type: ignore[operator]
                expected += abs(losses[0] - losses[1]) / (2 * step) / len(calibration.rows)
            assert float(importance[neuron]) == pytest.approx(expected, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@torch.no_grad()
def test_a_sub_network_is_the_network_whose_other_heads_and_neurons_are_zero(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    network, (ids, _) = classifier(architecture, tokenizer), examples().rows[0]
    layers = layers_by_width(network, "leading_widths")
    hooks = [
        hook
        for layer in layers
        for hook in gate(network, layer, (torch.arange(4) < 2).double(), (torch.arange(layer.neurons) < 32).double())
    ]
    expected = network(input_ids=ids).logits
    for hook in hooks:
        hook.remove()  # type: ignore[attr-defined]
    whole = network(input_ids=ids).logits
    assert (whole - expected).abs().max() > 1e-3 and layers[0].neurons == 64
    with at_width(layers, 0.5):
        torch.testing.assert_close(network(input_ids=ids).logits, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(network(input_ids=ids).logits, whole, rtol=0, atol=0)
    before = network.num_parameters()
    part = LeadingWidths(share=0.5)
    smaller, change = part.shrink(network)
    torch.testing.assert_close(smaller(input_ids=ids).logits, expected, rtol=0, atol=1e-12)
    removed = 2 * (8 * 2) * (4 * 32) + 2 * 3 * 16 + 2 * (32 * (2 * 32 + 1))
    assert before - smaller.num_parameters() == removed
    rebuilt = part.rebuild(classifier(architecture, tokenizer), change)
    assert {name: value.shape for name, value in rebuilt.state_dict().items()} == {
        name: value.shape for name, value in smaller.state_dict().items()
    }


@pytest.mark.parametrize("architecture", ["t5", "xlnet"])
def test_a_network_whose_heads_cannot_be_left_out_is_refused(
    architecture: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    network = body(architecture, tokenizer)
    for part in (OrderedWidths(), LeadingWidths()):
        with pytest.raises(RecipeError, match=f"{part.name}: heads and neurons of the backbone {architecture} .*bert"):
            part.choose(network, examples())


def test_a_head_over_a_backbone_without_sub_networks_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    config = Transformer(architecture="xlnet").tiny().config(tokenizer, 16)
    with pytest.raises(RecipeError, match="heads and neurons of the backbone xlnet cannot be left out alone; use seq"):
        DynamicWidthClassificationHead().build(config, None)


def test_it_continues_a_classifier_of_its_kind_alone() -> None:
    head = DynamicWidthClassificationHead()
    assert head.continues(SequenceClassificationHead()) and head.continues(DynamicWidthClassificationHead())
    assert not head.continues(SequenceClassificationHead(pooling="cls"))
    assert not head.continues(EarlyExitClassificationHead()), "which has more weights"


@pytest.mark.parametrize("shares", [(0.5, 0.25, 1.0), (0.5, 0.5, 1.0), (0.25, 0.5), (0.0, 1.0), (1.0, 1.5)])
def test_shares_ascend_to_the_whole(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="give shares of the width in ascending order, each once, 1 last"):
        DynamicWidthClassificationHead(shares=shares)


def opened(seed: int) -> PreTrainedModel:
    """A small classifier with the head, float64."""
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=32)
    config._attn_implementation = "eager"
    head = DynamicWidthClassificationHead(shares=SHARES)
    network = build_network(ModelRecord(head=head, family=TaskFamily.default(), labels=("a", "b", "c")), config)
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 0.2)
    return network.double().eval()


def test_the_loss_is_that_of_the_paper_over_cut_out_networks() -> None:
    network, teacher = opened(0), opened(1)
    head, objective = DynamicWidthClassificationHead(shares=SHARES), MatchWidths(states=0.1)
    ids = torch.randint(5, 60, (3, 8), generator=torch.Generator().manual_seed(2))
    mask = torch.ones_like(ids)
    mask[1:, 6:] = 0
    batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask}
    signals = head.signals(network, batch, objective.required_signals)
    requests: list[frozenset[Signal]] = []

    def of_teacher(name: str, read: object, requested: frozenset[Signal]) -> dict[Signal, object]:
        requests.append(requested)
        return SequenceClassificationHead().signals(teacher, batch, requested)

    step = TrainingStep(batch, signals, network, of_teacher, objective.required_signals)
    terms = objective.loss(step)
    assert requests == [frozenset({Signal.LOGITS, Signal.HIDDEN_STATES})], "a teacher has one width"

    def forward(one: PreTrainedModel) -> tuple[Tensor, list[Tensor]]:
        outputs = one(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        return outputs.logits, list(outputs.hidden_states)

    with torch.no_grad():
        target, goals = forward(teacher)
        of_logits, of_states = [], []
        for share in SHARES:
            smaller = LeadingWidths(share=share).shrink(deepcopy(network)).network
            logits, states = forward(smaller)
            of_logits.append(-(target.softmax(-1) * logits.log_softmax(-1)).sum(-1).mean())
            real = mask.bool()
            of_states.append(
                sum((state[real] - goal[real]).square().mean() for state, goal in zip(states, goals, strict=True))
            )
    expected = {"width_logits": sum(of_logits) / 3, "width_states": 0.1 * sum(of_states) / 3}
    assert terms.keys() == expected.keys() == objective.counts(batch, network).keys()
    for name, value in expected.items():
        assert float(terms[name].detach()) == pytest.approx(float(value), rel=1e-5), name
    torch.testing.assert_close(signals[Signal.LOGITS], signals[WIDTH_LOGITS][-1])
    sum(terms.values()).backward()  # type: ignore[union-attr]
    narrow = network.bert.encoder.layer[0].intermediate.dense.weight.grad  # type: ignore[union-attr, index]
    assert (narrow.abs().sum(1) > 0).all(), "the whole network trains too"  # type: ignore[union-attr, operator]
    alone = MatchWidths(states=0)
    assert alone.required_signals == {WIDTH_LOGITS} and WIDTH_STATES not in head.signals(
        network, batch, alone.required_signals
    )
    assert alone.loss(TrainingStep(batch, signals, network, of_teacher)).keys() == {"width_logits"}


def test_another_shape_than_the_teachers_is_refused() -> None:
    shape = NetworkShape(4, 32, 2)
    assert MatchWidths().unfit(shape, shape) is None
    assert "2 layers are not 4; let the stage start" in str(MatchWidths().unfit(shape._replace(layers=2), shape))
    assert "16 elements of a state are not 32" in str(MatchWidths().unfit(shape._replace(width=16), shape))
    assert MatchWidths(states=0).unfit(shape._replace(layers=2), shape) is None
