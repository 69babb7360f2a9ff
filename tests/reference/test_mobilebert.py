"""MobileBERT's transfer in float64 by the paper's equations, its sizes by its tables (Sun et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, MobileBertConfig, MobileBertForMaskedLM, PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.networks.shape import NetworkShape
from pipelines.parts.compressions.thin_bottlenecks import ThinBottlenecks
from pipelines.parts.heads.masked_lm import MaskedLMHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.layer_by_layer import LayerByLayer
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.compressions.test_select_layers import body
from tests.reference.masked_text import GATHERED, build, hugging_face, masked_batch

LARGE = {
    "vocab_size": 30522,
    "hidden_size": 512,
    "embedding_size": 128,
    "num_hidden_layers": 24,
    "num_attention_heads": 4,
    "intermediate_size": 4096,
    "intra_bottleneck_size": 1024,
    "num_feedforward_networks": 1,
    "use_bottleneck_attention": True,
    "key_query_shared_bottleneck": False,
    "normalization_type": "layer_norm",
    "hidden_act": "gelu",
}
"""IB-BERT, the teacher (table 1)."""
SMALL = {**LARGE, "vocab_size": 60, "hidden_size": 32, "embedding_size": 16, "num_hidden_layers": 3}
SMALL |= {"num_attention_heads": 2, "intermediate_size": 64, "intra_bottleneck_size": 48}


def teacher_of(dims: dict[str, object]) -> MobileBertForMaskedLM:
    torch.manual_seed(0)
    return MobileBertForMaskedLM(MobileBertConfig(**dims)).eval()


def parameters(network: torch.nn.Module) -> int:
    return sum(one.numel() for one in network.parameters())


def test_at_the_paper_s_sizes_teacher_and_student_have_its_numbers_of_parameters() -> None:
    with torch.device("meta"):
        teacher = MobileBertForMaskedLM(MobileBertConfig(**LARGE))
        student = ThinBottlenecks().shrink(teacher).network
    # table 1 counts no head; its attention reads the states, where that of transformers reads the wide bottleneck
    wider = 24 * 3 * (1024 - 512) * 1024
    assert parameters(teacher.base_model) - wider == pytest.approx(293e6, rel=0.01)
    assert parameters(student.base_model) == pytest.approx(25.3e6, rel=0.03)


@torch.no_grad()
def test_the_student_is_the_published_network_with_the_teacher_s_embeddings_and_head(tmp_path: Path) -> None:
    teacher = teacher_of(SMALL)
    torch.manual_seed(1)
    student, change = ThinBottlenecks(width=8, neurons=16, feed_forwards=4).shrink(teacher)
    assert not change, "the configuration states all of it"
    student.save_pretrained(tmp_path)
    again = AutoModelForMaskedLM.from_pretrained(tmp_path).eval()
    ids = torch.randint(5, 60, (2, 9))
    assert torch.equal(again(ids).logits, student.eval()(ids).logits), "plain transformers opens it"
    config = again.config
    assert (config.true_hidden_size, config.intermediate_size, config.num_feedforward_networks) == (8, 16, 4)
    for name, value in teacher.state_dict().items():
        if ".layer." not in name and "embeddings.LayerNorm" not in name:
            assert torch.equal(student.state_dict()[name], value), name
    assert teacher.config.true_hidden_size == 48, "the teacher is as it was"


@torch.no_grad()
def test_logits_of_masked_tokens_are_those_of_hugging_face(tokenizer: PreTrainedTokenizerFast) -> None:
    network, batch = build(MaskedLMHead(), "mobilebert", tokenizer), masked_batch(tokenizer)
    requested = frozenset({Signal.MASKED_LOGITS})
    own = MaskedLMHead().signals(network, batch, requested)[Signal.MASKED_LOGITS]
    everywhere = network(**hugging_face(batch)).logits
    expected = everywhere.flatten(0, 1)[batch[Field.MASKED_POSITIONS]]
    torch.testing.assert_close(own, expected, atol=GATHERED, rtol=1e-4)


def signals(network: MobileBertForMaskedLM, ids: Tensor, mask: Tensor) -> dict[Signal, Sequence[Tensor]]:
    batch = {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask, Field.MASKED_POSITIONS: torch.tensor([0])}
    requested = frozenset({Signal.HIDDEN_STATES, Signal.ATTENTION_SCORES})
    return MaskedLMHead().signals(network, batch, requested)


def by_the_paper(
    own: dict[str, list[np.ndarray]], other: dict[str, list[np.ndarray]], layer: int, lengths: list[int]
) -> float:
    """Eq. 1 and 2 for one layer, over the tokens of each row that are not padding."""

    def feature_maps(number: int) -> float:
        terms = [
            (own["states"][number][row, token] - other["states"][number][row, token]) ** 2
            for row, length in enumerate(lengths)
            for token in range(length)
        ]
        return float(np.mean(terms))

    entropy = []
    for row, length in enumerate(lengths):
        for head in range(own["scores"][0].shape[1]):
            for token in range(length):
                student, teacher = (one["scores"][layer - 1][row, head, token, :length] for one in (own, other))
                p, q = (np.exp(each - each.max()) / np.exp(each - each.max()).sum() for each in (teacher, student))
                entropy.append(float((p * np.log(p / q)).sum()))
    maps = feature_maps(layer) + (feature_maps(0) if layer == 1 else 0.0)
    return maps + float(np.mean(entropy))


@pytest.mark.parametrize(("progress", "layer"), [(0.0, 1), (0.32, 1), (0.34, 2), (0.7, 3), (0.999, 3)])
@torch.no_grad()
def test_the_loss_of_a_layer_is_that_of_the_equations(progress: float, layer: int) -> None:
    teacher = teacher_of(SMALL)
    student = ThinBottlenecks(width=8, neurons=16).shrink(teacher).network
    for network in (teacher, student):
        for value in network.parameters():
            value.add_(0.1 * torch.randn_like(value))
    ids, mask = torch.randint(5, 60, (2, 7)), torch.ones(2, 7, dtype=torch.long)
    mask[1, 4:] = 0
    own, other = (signals(one.double().eval(), ids, mask) for one in (student, teacher))
    step = TrainingStep(
        {Field.INPUT_IDS: ids, Field.ATTENTION_MASK: mask}, own, student, lambda *_: other, progress=progress
    )
    arrays = [
        {
            "states": [one.numpy() for one in each[Signal.HIDDEN_STATES]],
            "scores": [one.numpy() for one in each[Signal.ATTENTION_SCORES]],
        }
        for each in (own, other)
    ]
    expected = by_the_paper(arrays[0], arrays[1], layer, [7, 4])
    assert float(LayerByLayer().loss(step)["layer_by_layer"]) == pytest.approx(expected, rel=1e-5)


def test_what_does_not_fit_is_one_sentence(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(RecipeError, match="the layers of the backbone bert have no bottlenecks"):
        ThinBottlenecks().shrink(body("bert", tokenizer))
    with pytest.raises(RecipeError, match="width 9 is no multiple of the attention heads"):
        ThinBottlenecks(width=9).shrink(teacher_of(SMALL))
    objective = LayerByLayer()
    assert objective.unfit(NetworkShape(4, 64, 2), NetworkShape(4, 64, 2)) is None
    assert "has 4 layers and its teacher 6" in str(objective.unfit(NetworkShape(4, 64, 2), NetworkShape(6, 64, 2)))
    assert "64 elements of a state" in str(objective.unfit(NetworkShape(4, 64, 2), NetworkShape(4, 32, 2)))
