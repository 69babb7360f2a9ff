"""ERNIE of Tsinghua: alignment one by one, aggregators and the denoising auto-encoder by the paper's equations."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu
from transformers import AutoModel, BertConfig, BertModel

from pipelines.errors import RecipeError
from pipelines.networks.entity_names import BEGINS, CONTINUES, SPECIAL
from pipelines.networks.ernie_thu import (
    ALIGNED_ENTITIES,
    Aggregator,
    EntityAligner,
    ErnieThuConfig,
    ErnieThuModel,
    register_auto_classes,
)
from pipelines.parts.backbones.ernie_thu import ErnieThu
from pipelines.parts.heads.masked_lm_on_states import MaskedLMOnStatesHead
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.denoising_entities import DenoisingEntities
from pipelines.parts.tokenizers.wordpiece import WordPiece
from pipelines.vocabulary import Field

NAMES = [[7], [7, 8], [9, 21], [30]]
CANDIDATES = [[0, 3], [1], [2, 4, 5], [5]]
PRIORS = [[0.25, 0.75], [1.0], [0.5, 0.3, 0.2], [1.0]]
MEANT = [4, 2, 3, 6]
"""The most probable entity of each name, from 1."""
FACTS = [[0, 0, 1], [1, 0, 2], [3, 1, 4], [4, 1, 5]]
ROLES = [SPECIAL] * 4 + [BEGINS] * 16 + [CONTINUES] * 10 + [BEGINS] * 20
"""Tokens 20 to 29 continue words."""
ROWS = torch.tensor(
    [[1, 7, 8, 10, 9, 21, 2, 0], [1, 7, 21, 10, 9, 21, 22, 2], [1, 11, 30, 8, 7, 30, 2, 0], [1, 11, 12, 13, 2, 0, 0, 0]]
)
ALIGNED = torch.tensor(
    [[0, 2, 0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 6, 0, 4, 6, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]]
)
"""Of `ROWS`: 7 8 is the longer of two names, and 7 21 22 and 9 21 22 are other words."""
DIMS = {"vocab_size": 50, "hidden_size": 12, "num_attention_heads": 2, "intermediate_size": 20}


def config(**changes: Any) -> ErnieThuConfig:
    own = {"num_hidden_layers": 1, "num_aggregators": 2, "entity_size": 8, "entity_heads": 2, "names": NAMES}
    graph = {"candidates": CANDIDATES, "priors": PRIORS, "facts": FACTS, "num_entities": 6, "token_roles": ROLES}
    return ErnieThuConfig(**{**DIMS, **own, **graph, **changes})


def moved(network: Any) -> Any:
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 0.3)
    return network.double().eval()


def network() -> ErnieThuModel:
    torch.manual_seed(1)
    built: ErnieThuModel = moved(ErnieThuModel(config()))
    return built


def test_the_longest_name_that_begins_with_a_token_is_aligned_to_it() -> None:
    assert torch.equal(EntityAligner(config())(ROWS), ALIGNED)
    assert EntityAligner(config()).meant.tolist() == [0, *MEANT]


def attended(layer: Any, of: int, vectors: list[Tensor]) -> Tensor:
    """Vector `of` after attending to all `vectors`, by the equations of Vaswani et al. 2017, §3.2."""
    width = len(vectors[of]) // layer.heads
    parts = []
    for head in range(layer.heads):
        one = slice(head * width, (head + 1) * width)
        products = [layer.query(vectors[of])[one] @ layer.key(other)[one] / math.sqrt(width) for other in vectors]
        shares = torch.stack(products).softmax(0)
        parts.append(sum(share * layer.value(other)[one] for share, other in zip(shares, vectors, strict=True)))
    result: Tensor = layer.attention_norm(vectors[of] + layer.attended(torch.cat(parts)))
    return result


def aggregated(layer: Aggregator, states: Tensor, entities: dict[int, Tensor]) -> tuple[Tensor, dict[int, Tensor]]:
    """One row's tokens, and the entities at some of its positions, token by token (equations 4 to 6)."""
    own, _ = layer.attention(states[None])
    positions = [*entities]
    read = {at: attended(layer.entity_attention, number, [*entities.values()]) for number, at in enumerate(positions)}
    tokens, fused = [], {}
    for at, state in enumerate(own[0]):
        middle = layer.of_tokens.weight @ state + layer.of_tokens.bias
        if at in read:
            middle = middle + layer.of_entities.weight @ read[at]
        hidden = gelu(middle)
        tokens.append(layer.token_norm(state + layer.tokens(hidden)))
        if at in read:
            fused[at] = layer.entity_norm(read[at] + layer.entities(hidden))
    return torch.stack(tokens), fused


@torch.no_grad()
def test_aggregators_are_those_of_the_equations() -> None:
    built, mask = network(), (ROWS != 0).long()
    states = built(ROWS, mask, output_hidden_states=True).hidden_states
    assert len(states) == 4
    for row in range(len(ROWS)):
        kept = int(mask[row].sum())
        expected = built.layers[0](built.embeddings(input_ids=ROWS[row : row + 1, :kept]))[0]
        torch.testing.assert_close(states[1][row, :kept], expected, atol=1e-9, rtol=0)
        entities = {at: built.entities[one] for at, one in enumerate(ALIGNED[row, :kept].tolist()) if one}
        for number, layer in enumerate(built.aggregators, start=2):
            expected, entities = aggregated(layer, expected, entities)
            torch.testing.assert_close(states[number][row, :kept], expected, atol=1e-9, rtol=0)


@torch.no_grad()
def test_without_entities_it_is_bert() -> None:
    built = network()
    bert = BertModel(BertConfig(**DIMS, num_hidden_layers=3), add_pooling_layer=False).double().eval()
    renamed = {}
    for name, value in built.state_dict().items():
        for old, new in (
            ("layers.0", "encoder.layer.0"), ("aggregators.0", "encoder.layer.1"), ("aggregators.1", "encoder.layer.2"),
            ("of_tokens", "intermediate.dense"), (".tokens", ".output.dense"), ("token_norm", "output.LayerNorm"),
        ):  # fmt: skip
            name = name.replace(old, new)
        renamed[name] = value
    missing, _ = bert.load_state_dict(renamed, strict=False)
    assert not missing
    mask = (ROWS != 0).long()
    none = torch.zeros_like(ROWS)
    ours = built(ROWS, mask, channels={"aligned_entities": none}).last_hidden_state
    plain = bert(input_ids=ROWS, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(ours[mask == 1], plain[mask == 1])
    assert (built(ROWS, mask).last_hidden_state - ours)[0].abs().max() > 0.01


@torch.no_grad()
def test_a_saved_folder_is_opened_as_it_was(tmp_path: Path) -> None:
    register_auto_classes()
    built = network().float()
    built.entities.normal_()
    built.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(opened, ErnieThuModel)
    assert torch.equal(built(ROWS).last_hidden_state, opened(ROWS).last_hidden_state)


def predictor() -> Any:
    register_auto_classes()
    torch.manual_seed(2)
    return moved(MaskedLMOnStatesHead().build(config(), None))


def step_of(objective: DenoisingEntities, built: Any, rows: Tensor) -> TrainingStep:
    """A step whose batch is rewritten, with the signals of the network."""
    torch.manual_seed(0)
    part = objective.build(config(), None)
    assert part is not None
    modules = {objective.name: part.double()}
    step = TrainingStep({Field.INPUT_IDS: rows}, {}, built, lambda *_: {}, objective.needs_signals, modules=modules)
    step.batch = objective.rewrite(step)
    step.signals = MaskedLMOnStatesHead().signals(built, step.batch, objective.needs_signals)
    return step


def test_entities_are_predicted_among_those_of_their_row() -> None:
    objective, built = DenoisingEntities(replaced=0.3, hidden=0.3), predictor()
    step = step_of(objective, built, ROWS)
    assert not torch.equal(step.batch[ALIGNED_ENTITIES], ALIGNED), "some are replaced or hidden"
    linear: Any = step.modules[objective.name]
    states = built.base_model(ROWS, channels={"aligned_entities": step.batch[ALIGNED_ENTITIES]}).last_hidden_state
    terms = []
    for row, aligned in enumerate(ALIGNED.tolist()):
        different = sorted({one for one in aligned if one})
        for at, entity in enumerate(aligned):
            if entity:
                query = linear(states[row, at])
                products = torch.stack([query @ built.base_model.entities[one] for one in different])
                terms.append(-products.log_softmax(0)[different.index(entity)])
    loss = objective.loss(step)["denoising_entities"]
    torch.testing.assert_close(loss.double(), torch.stack(terms).mean(), atol=1e-6, rtol=1e-6)
    assert objective.counts(step.batch, built) == {"denoising_entities": len(terms)}
    loss.backward()
    assert linear.weight.grad.abs().sum() > 0


def test_entities_of_held_out_rows_are_predicted_as_they_are() -> None:
    """Validation rewrites no batch."""
    objective, built = DenoisingEntities(replaced=0.0, hidden=0.0), predictor()
    rewritten = step_of(objective, built, ROWS)
    batch = {Field.INPUT_IDS: ROWS}
    signals = MaskedLMOnStatesHead().signals(built, batch, objective.needs_signals)
    held_out = TrainingStep(batch, signals, built, lambda *_: {}, objective.needs_signals, modules=rewritten.modules)
    loss = objective.loss(held_out)["denoising_entities"]
    assert float(loss.detach()) > 0
    torch.testing.assert_close(loss, objective.loss(rewritten)["denoising_entities"])


def test_a_batch_without_mentions_has_no_loss() -> None:
    objective, built = DenoisingEntities(), predictor()
    step = step_of(objective, built, ROWS[3:])
    loss = objective.loss(step)["denoising_entities"]
    assert float(loss.detach()) == 0 and objective.counts(step.batch, built) == {"denoising_entities": 0}
    loss.backward()


def test_shares_of_mentions_are_replaced_hidden_and_kept() -> None:
    torch.manual_seed(0)
    rows = torch.full((4000, 4), 11)
    rows[:, 1] = 30
    built = predictor()
    step = TrainingStep({Field.INPUT_IDS: rows}, {}, built, lambda *_: {})
    read = DenoisingEntities().rewrite(step)[ALIGNED_ENTITIES]
    assert not read[:, [0, 2, 3]].any()
    of_mentions = read[:, 1]
    assert float((of_mentions == 0).double().mean()) == pytest.approx(0.15, abs=0.02)
    assert float((of_mentions == 6).double().mean()) == pytest.approx(0.8, abs=0.02)
    assert set(of_mentions.tolist()) == {0, 1, 2, 3, 4, 5, 6}, "any other entity may replace one"


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="replaced and hidden are shares of the mentions: their sum must be at most 1"):
        DenoisingEntities(replaced=0.6, hidden=0.5)
    with pytest.raises(ValueError, match="entity_size 100 is no multiple of entity_heads 3"):
        ErnieThu(entity_heads=3)
    with pytest.raises(RecipeError, match="'bert' aligns none; leave the objective out, or choose a backbone that"):
        DenoisingEntities().build(BertConfig(**DIMS), None)
    tokenizer = WordPiece(vocab_size=100).train(["abc"] * 9)
    with pytest.raises(RecipeError, match="sequences of 64 tokens do not fit 32 positions"):
        ErnieThu(positions=32).config(tokenizer, 64)
