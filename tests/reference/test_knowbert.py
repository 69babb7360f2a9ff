"""KnowBert: mentions found one by one, and knowledge attention by the paper's equations."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModel, BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertLayer

from pipelines.errors import RecipeError
from pipelines.lineage.provenance import DataSource
from pipelines.networks.entity_names import BEGINS, CONTINUES, SPECIAL
from pipelines.networks.knowbert import KnowBertConfig, KnowBertModel, register_auto_classes
from pipelines.networks.mentions import MentionMatcher
from pipelines.networks.span_attention import SpanAttention
from pipelines.parts.backbones.knowbert import KnowBert
from pipelines.parts.tokenizers.wordpiece import WordPiece
from tests.pipelines.recipe.recipe_texts import written
from tests.steps import library_of, plan_of

NAMES = [[7], [7, 8], [9, 21], [30]]
CANDIDATES = [[0, 3], [1], [2, 4, 5], [5]]
PRIORS = [[0.75, 0.25], [1.0], [0.5, 0.3, 0.2], [1.0]]
FACTS = [[0, 0, 1], [1, 0, 2], [3, 1, 4], [4, 1, 5]]
ROLES = [SPECIAL] * 4 + [BEGINS] * 16 + [CONTINUES] * 10 + [BEGINS] * 20
"""Tokens 20 to 29 continue words."""
ROWS = torch.tensor(
    [[1, 7, 8, 10, 9, 21, 2, 0], [1, 7, 21, 10, 9, 21, 22, 2], [1, 11, 30, 8, 7, 2, 0, 0], [1, 11, 12, 13, 2, 0, 0, 0]]
)
DIMS = {
    "vocab_size": 50,
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 20,
}
SOME = -0.5
"""A threshold that some candidates of `ROWS` reach."""
ENTITY_DIMS = {"entity_size": 8, "entity_heads": 2, "entity_intermediate_size": 10, "linker_size": 6}


def network(threshold: float | None = None) -> KnowBertModel:
    torch.manual_seed(1)
    config = KnowBertConfig(
        **DIMS, **ENTITY_DIMS, after=2, names=NAMES, candidates=CANDIDATES, priors=PRIORS, facts=FACTS,
        num_entities=6, token_roles=ROLES, threshold=threshold,
    )  # fmt: skip
    built = KnowBertModel(config)
    with torch.no_grad():
        for value in built.parameters():
            value.add_(torch.randn_like(value) * 0.3)
    return built.double().eval()


def mentions_of(row: list[int]) -> list[tuple[int, int, int]]:
    """Number of the name, begin and end of each mention in a row, by the definition."""
    result = []
    for number, name in enumerate(NAMES):
        for begin in range(len(row) - len(name) + 1):
            end = begin + len(name)
            whole = end == len(row) or ROLES[row[end]] != CONTINUES
            inside = begin > 0 and ROLES[row[begin]] == CONTINUES and ROLES[row[begin - 1]] != SPECIAL
            if row[begin:end] == name and whole and not inside:
                result.append((number, begin, end))
    return result


def test_names_are_found_where_words_begin_and_end_with_them() -> None:
    matches = MentionMatcher(NAMES, ROLES)(ROWS)
    expected = [[(0, 1, 2), (1, 1, 3), (2, 4, 6)], [], [(0, 4, 5), (3, 2, 3)], []]
    for row, given, ids, covers in zip(ROWS.tolist(), expected, matches.ids, matches.covers, strict=True):
        found = sorted(
            (int(one) - 1, int(covers[:, at].nonzero().min()), int(covers[:, at].nonzero().max()) + 1)
            for at, one in enumerate(ids)
            if one
        )
        assert found == given == sorted(mentions_of(row))
        assert not covers[:, ids == 0].any()


def test_a_token_that_continues_a_word_begins_one_after_a_special_token() -> None:
    names = [[20, 8]]
    ids = [MentionMatcher(names, ROLES)(torch.tensor([row])).ids.sum() for row in ([1, 20, 8], [7, 20, 8], [20, 8, 1])]
    assert [int(one) for one in ids] == [1, 0, 1]


def test_words_that_joined_the_vocabulary_later_begin_words() -> None:
    new = len(ROLES) + 3
    matches = MentionMatcher(NAMES, ROLES)(torch.tensor([[1, 7, new, 9, 21, new, 2]]))
    assert sorted(matches.ids[0].tolist()) == [1, 3], "7, and 9 21, are whole words before them"


def attended(layer: SpanAttention, query: Tensor, others: list[Tensor]) -> Tensor:
    """The layer's output for one vector, by the equations of Vaswani et al. 2017, §3.2."""
    width = len(query) // layer.heads
    parts = []
    for head in range(layer.heads):
        one = slice(head * width, (head + 1) * width)
        products = [layer.query(query)[one] @ layer.key(other)[one] / math.sqrt(width) for other in others]
        shares = torch.stack(products).softmax(0)
        parts.append(sum(share * layer.value(other)[one] for share, other in zip(shares, others, strict=True)))
    middle = layer.attention_norm(query + layer.attended(torch.cat(parts)))
    result: Tensor = layer.norm(middle + layer.outer(nn.functional.gelu(layer.inner(middle))))
    return result


def recalled(built: KnowBertModel, states: Tensor, row: list[int], threshold: float | None) -> Tensor:
    """H′ of one row, mention by mention (KnowBert §3.3, equations 1 to 6)."""
    part, own = built.knowledge, mentions_of(row)
    if not own:
        return states
    words = part.down(states)
    pooled = []
    for _, begin, end in own:
        shares = part.pooling(words[begin:end]).squeeze(-1).softmax(0)
        pooled.append(part.mention_norm((shares[:, None] * words[begin:end]).sum(0)))
    encoded = [attended(part.mentions, one, pooled) for one in pooled]
    enriched = []
    for (name, *_), vector in zip(own, encoded, strict=True):
        scores, vectors = [], []
        for entity, prior in zip(CANDIDATES[name], PRIORS[name], strict=True):
            of_entity = part.entity_norm(part.entities[1 + entity])
            product = vector @ of_entity / math.sqrt(len(vector))
            score = part.linker(torch.stack([torch.tensor(prior, dtype=torch.double), product]))[0]
            if threshold is None or score >= threshold:
                scores.append(score)
                vectors.append(of_entity)
        if scores:
            shares = torch.stack(scores).softmax(0)
            enriched.append(vector + sum(share * one for share, one in zip(shares, vectors, strict=True)))
        else:
            assert part.null is not None
            enriched.append(vector + part.null)
    return torch.stack(
        [state + part.up(attended(part.words, word, enriched)) for state, word in zip(states, words, strict=True)]
    )


@pytest.mark.parametrize("threshold", [None, SOME, 100.0])
@torch.no_grad()
def test_knowledge_attention_is_that_of_the_equations(threshold: float | None) -> None:
    built = network(threshold)
    for name, row in enumerate(PRIORS, start=1):  # they were rounded to float32
        built.knowledge.priors[name, : len(row)] = torch.tensor(row, dtype=torch.double)
    mask = (ROWS != 0).long()
    states = built(ROWS, mask, output_hidden_states=True).hidden_states
    for row, tokens in enumerate(ROWS.tolist()):
        kept = int(mask[row].sum())
        expected = built.embeddings(input_ids=ROWS[row : row + 1, :kept])
        for at, layer in enumerate(built.layers, start=1):
            expected = layer(expected)
            if at == 2:
                expected = recalled(built, expected[0], tokens[:kept], threshold)[None]
            torch.testing.assert_close(states[at][row, :kept], expected[0], atol=1e-9, rtol=0)


@torch.no_grad()
def test_a_threshold_leaves_out_some_candidates_and_not_others() -> None:
    built, seen = network(SOME), []
    built.knowledge.linker.register_forward_hook(lambda *given: seen.append(given[2]))
    built(ROWS)
    counted = built.knowledge.candidates[built.matcher(ROWS).ids] > 0
    scores = seen[0].squeeze(-1)[counted]
    assert 0 < int((scores >= SOME).sum()) < len(scores), "the test above sees both"


@torch.no_grad()
def test_the_layer_over_spans_is_berts() -> None:
    torch.manual_seed(2)
    ours = SpanAttention(12, 2, 20, 0.0, 0.0).double()
    bert = BertLayer(BertConfig(**DIMS, attn_implementation="eager")).double().eval()
    names = {
        "attention.self.": "", "attention.output.dense": "attended", "attention.output.LayerNorm": "attention_norm",
        "intermediate.dense": "inner", "output.dense": "outer", "output.LayerNorm": "norm",
    }  # fmt: skip
    weights = {}
    for name, value in bert.state_dict().items():
        start = next(one for one in names if name.startswith(one))
        weights[names[start] + name[len(start) :]] = value
    ours.load_state_dict(weights)
    states = torch.randn(3, 5, 12, dtype=torch.double)
    every = torch.ones(3, 5, dtype=torch.bool)
    torch.testing.assert_close(ours(states, states, every), bert(states), atol=1e-10, rtol=0)


@torch.no_grad()
def test_without_a_mention_it_is_bert() -> None:
    built, bert = network(), BertModel(BertConfig(**DIMS), add_pooling_layer=False).double().eval()
    renamed = {
        name.replace("layers.", "encoder.layer."): value
        for name, value in built.state_dict().items()
        if not name.startswith(("knowledge", "matcher"))
    }
    bert.load_state_dict(renamed)
    mask = (ROWS != 0).long()
    ours, plain = (one(input_ids=ROWS, attention_mask=mask).last_hidden_state for one in (built, bert))
    torch.testing.assert_close(ours[3][mask[3] == 1], plain[3][mask[3] == 1])
    assert (ours[0] - plain[0]).abs().max() > 0.1


def test_every_weight_has_a_gradient_and_entities_do_not_train() -> None:
    built = network(SOME).train()
    built(ROWS[:1]).last_hidden_state.sum().backward()
    assert all(value.grad is not None for value in built.parameters())
    assert "knowledge.entities" not in dict(built.named_parameters())
    assert "knowledge.entities" in built.state_dict()


@torch.no_grad()
def test_a_saved_folder_is_opened_as_it_was(tmp_path: Path) -> None:
    register_auto_classes()
    built = network().float()
    built.knowledge.entities.normal_()
    built.save_pretrained(tmp_path)
    opened = AutoModel.from_pretrained(tmp_path).eval()
    assert isinstance(opened, KnowBertModel)
    assert torch.equal(built(ROWS).last_hidden_state, opened(ROWS).last_hidden_state)


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.tsv"
    broken.write_text("# facts\none column\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"broken.tsv:2: expected subject, predicate and object, or a term and"):
        KnowBert(graphs=(broken,))
    with pytest.raises(ValueError, match="hidden_size 768 is no multiple of num_attention_heads 5"):
        KnowBert(num_attention_heads=5)
    with pytest.raises(ValueError, match="entity_size 200 is no multiple of entity_heads 3"):
        KnowBert(entity_heads=3)
    with pytest.raises(
        ValueError, match="after: the knowledge attention is between two of the 4 layers; give at most 3"
    ):
        KnowBert(num_hidden_layers=4, after=4)
    tokenizer = WordPiece(vocab_size=100).train(["abc"] * 9)
    with pytest.raises(RecipeError, match="sequences of 64 tokens do not fit 32 positions"):
        KnowBert(positions=32).config(tokenizer, 64)
    other = tmp_path / "other.tsv"
    other.write_text("яблоко\tфрукт\n", encoding="utf-8")
    with pytest.raises(RecipeError, match="no name of an entity, such as 'яблоко', can be written in tokens of"):
        KnowBert(graphs=(other,)).config(tokenizer, 16)


def test_a_missing_graph_is_refused_when_the_recipe_is_planned(tmp_path: Path) -> None:
    backbone = "{name: knowbert, positions: 32, graphs: nowhere/graph.tsv}"
    library = library_of(tmp_path, meeting=written(backbone=backbone, head="masked_lm_on_states"))
    with pytest.raises(RecipeError, match=r"knowbert: there is no file nowhere/graph.tsv; give a path relative to the"):
        plan_of(library, "meeting", {"general": DataSource(digest="general", path="general")})
