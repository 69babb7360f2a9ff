"""Projected attention layers compute the equation of their paper beside every layer, each line its own."""

from __future__ import annotations

import math
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig

from pipelines.errors import RecipeError
from pipelines.models.opening import ModelRecord
from pipelines.networks.document_attention import attend_within_documents, documents_of
from pipelines.networks.line_modules import BackboneOfLine
from pipelines.networks.several_heads import SeveralHeads
from pipelines.parts.compressions.select_layers import SelectLayers
from pipelines.parts.heads.sequence_classification import SequenceClassificationHead
from pipelines.parts.strategies.projected_attention import MODULE, ProjectedAttentionStrategy
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from pipelines.task_families import Task, TaskFamily
from pipelines.training.assembly.finished import refuse_finished
from tests.pipelines.parts.strategies.harness import IDS, LABELS, MASK, TINY, classifier

SIZE, HEADS = 6, 2
PROJECTED = ProjectedAttentionStrategy(size=SIZE, heads=HEADS)
TASK = Task(TaskFamily.default(), ("a", "b", "c"))
PADDED = MASK.clone()
PADDED[1:, 7:] = 0


def several() -> SeveralHeads:
    """A body below the heads of two lines, in eval mode; weights are large, so that nothing is nearly zero."""
    torch.manual_seed(0)
    config = AutoConfig.for_model("bert", vocab_size=64, pad_token_id=0, **TINY["bert"])
    config._attn_implementation = "eager"
    heads = {name: SequenceClassificationHead(pooling="mean").build(deepcopy(config), TASK) for name in ("one", "two")}
    network = SeveralHeads(config, heads)
    PROJECTED.add_modules(network)
    with torch.no_grad():
        for name, value in network.named_parameters():
            if MODULE in name:
                value.normal_()
    return network.eval()  # type: ignore[no-any-return]


def test_what_is_added_to_a_layer_is_the_equation_of_the_paper() -> None:
    network = classifier().double()
    before = network.eval().base_model(IDS, PADDED, output_hidden_states=True)
    PROJECTED.add_modules(network)
    network.double().eval()
    added = network.get_submodule(MODULE)
    with torch.no_grad():
        for value in added.parameters():
            value.normal_()
        after = network.base_model(IDS, PADDED, output_hidden_states=True)
    layer, states = network.base_model.encoder.layer[0], before.hidden_states[0]
    weights = dict(added.named_parameters())

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    inner = linear(states, "down")
    heads = []
    for part in range(HEADS):
        chosen = slice(part * SIZE // HEADS, (part + 1) * SIZE // HEADS)
        query, key, value = (linear(inner, f"attention.0.{name}")[..., chosen] for name in ("query", "key", "value"))
        scores = query @ key.transpose(1, 2) / math.sqrt(SIZE // HEADS)
        heads.append(scores.masked_fill(PADDED[:, None] == 0, -math.inf).softmax(-1) @ value)
    beside = functional.gelu(linear(torch.cat(heads, -1), "up"))
    inside = layer.attention(states, mask_of_rows())[0]
    through = layer.output.dense(layer.intermediate(inside))
    expected = layer.output.LayerNorm(inside + through + beside)
    torch.testing.assert_close(after.hidden_states[1], expected, rtol=1e-10, atol=1e-12)
    assert not torch.allclose(after.hidden_states[1], before.hidden_states[1], atol=0.1)


def backbone_of(network: nn.Module) -> dict[str, Tensor]:
    """The weights below the heads."""
    return {name: value for name, value in network.state_dict().items() if name.startswith("bert.")}


def mask_of_rows() -> Tensor:
    """The mask of `PADDED` as a layer receives it."""
    return torch.zeros(len(PADDED), 1, 1, PADDED.shape[1]).double().masked_fill(PADDED[:, None, None] == 0, -math.inf)


def test_a_line_computes_with_its_own_and_the_other_as_if_it_had_none() -> None:
    network = several()
    one, two = network.head("one"), network.head("two")
    with torch.no_grad():
        first, second = one(IDS, PADDED).logits, two(IDS, PADDED).logits
        two.get_submodule(MODULE).up.weight.normal_()  # type: ignore[union-attr, operator]
        assert torch.equal(one(IDS, PADDED).logits, first) and not torch.allclose(two(IDS, PADDED).logits, second)
        copied = deepcopy(network)
        one.get_submodule(MODULE).up.weight.zero_()  # type: ignore[union-attr, operator]
        one.get_submodule(MODULE).up.bias.zero_()  # type: ignore[union-attr, operator]
        assert torch.equal(copied.head("one")(IDS, PADDED).logits, first), "a copy computes with its own"
        alone = SequenceClassificationHead(pooling="mean").build(deepcopy(network.config), TASK).eval()
        alone.load_state_dict({**backbone_of(network), **one.state_dict()}, strict=False)
        assert torch.equal(one(IDS, PADDED).logits, alone(IDS, PADDED).logits), "gelu(0) = 0: as if it had none"
    assert isinstance(one.base_model, BackboneOfLine) and one.base_model.backbone is two.base_model.backbone


def test_in_a_row_of_several_documents_each_is_read_as_if_it_were_alone() -> None:
    network = several().double()
    attend_within_documents(network)
    starts = torch.zeros_like(IDS)
    starts[:, [0, 4]] = 1
    with torch.no_grad():
        for name in network.head_names:
            backbone = network.head(name).base_model
            together = backbone(IDS, documents=documents_of(starts)).last_hidden_state
            # positions of a second document go on where they are
            positions = torch.arange(4, IDS.shape[1])[None]
            alone = backbone(IDS[:, 4:], position_ids=positions).last_hidden_state
            torch.testing.assert_close(together[:, 4:], alone)
            torch.testing.assert_close(together[:, :4], backbone(IDS[:, :4]).last_hidden_state)


def test_a_step_of_one_line_gives_no_gradient_to_the_modules_of_another() -> None:
    network = several().train()
    loss: Tensor = nn.functional.cross_entropy(network.head("one")(IDS, MASK).logits, LABELS)
    loss.backward()  # type: ignore[no-untyped-call]
    moved = {name for name, value in network.named_parameters() if value.grad is not None and MODULE in name}
    assert moved == {name for name, _ in network.named_parameters() if name.startswith(f"heads.one_head.{MODULE}")}


def test_at_the_size_of_bert_base_a_task_adds_thirteen_parts_in_a_hundred_for_eight() -> None:
    with torch.device("meta"):
        config = AutoConfig.for_model("bert")
        network = SequenceClassificationHead(pooling="mean").build(config, Task(TaskFamily.default(), ("a", "b")))
        whole = sum(value.numel() for value in network.base_model.parameters())
        ProjectedAttentionStrategy().add_modules(network)
    added = sum(value.numel() for name, value in network.named_parameters() if MODULE in name)
    assert added == 2 * 768 * 204 + 768 + 204 + 12 * 3 * (204 * 204 + 204)
    assert 1 + 8 * added / whole == pytest.approx(1.13, abs=0.01), "1.13 times the parameters of BERT"


def test_what_it_cannot_stand_beside_is_refused() -> None:
    with pytest.raises(RecipeError, match="backbone is gpt2; supported: bert, electra, .*roberta"):
        PROJECTED.add_modules(classifier(architecture="gpt2"))
    network = classifier()
    PROJECTED.add_modules(network)
    with pytest.raises(RecipeError, match="projected_attention: the initial model already has such modules with other"):
        ProjectedAttentionStrategy(size=8, heads=2).add_modules(network)
    with pytest.raises(ValueError, match="size: 204 is no multiple of its 5 heads; 200 would be"):
        ProjectedAttentionStrategy(heads=5)


def test_no_layer_is_removed_from_a_folder_whose_lines_have_modules() -> None:
    record = ModelRecord(head=SequenceClassificationHead(), labels=("a", "b"), extensions=(PROJECTED,))
    stage = Stage(kind=Kind.COMPRESS, compression=(SelectLayers(),))
    with pytest.raises(RecipeError, match="models/ours: strategy projected_attention has modules of each line beside"):
        refuse_finished(stage, record, Path("models/ours"))
    refuse_finished(stage.model_copy(update={"compression": ()}), record, Path("models/ours"))
