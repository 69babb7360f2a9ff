"""The network of the deep biaffine parser: scores of every pair of words (Dozat & Manning 2017, arXiv:1611.01734, §2).

    tokens ─▶ backbone ─▶ states of words ─┬▶ MLP ─▶ dependents ─┐
                          root + words ────┴▶ MLP ─▶ heads ──────┴▶ dᵀ U h + u · h      of arcs; of relations, as well
                                                                     dᵀ U h + w · d + v · h + b

Shapes: B sentences in rows of L tokens, W words in the longest, H the width of the backbone's states, R relations.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead

LEAK = 0.1
"""Share of a negative input that the units of the layers below the scores let through."""


@dataclass
class ParserOutput(ModelOutput):
    """Outputs of the parser."""

    arcs: Tensor | None = None
    """[B, W, W + 1]: score of each head of each word: the root first, then the words; −inf for what is no word."""
    relations: Tensor | None = None
    """[B, W, W + 1, R]: scores of the relations of each word to each head."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""


class BiaffineNetwork(BackboneWithHead):
    """backbone → states at the first tokens of words → scores of arcs and relations. The root has a learned state.

    Configuration keys: `id2label` (R), `parser_arcs` and `parser_relations` (widths of the layers below the scores) and
    `parser_dropout` (of the states, and of what these layers return).
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        width, relations = config.hidden_size, len(config.id2label or {})
        self.root = nn.Parameter(torch.empty(width).normal_(std=getattr(config, "initializer_range", 0.02)))
        self.dropout = nn.Dropout(config.parser_dropout)
        self.arc_dependents, self.arc_heads = (self._layer(width, config.parser_arcs) for _ in range(2))
        self.relation_dependents, self.relation_heads = (self._layer(width, config.parser_relations) for _ in range(2))
        self.arcs = Biaffine(config.parser_arcs, 1, of_dependents=False)
        self.relations = Biaffine(config.parser_relations, relations, of_dependents=True)

    def _layer(self, inputs: int, outputs: int) -> nn.Sequential:
        layer = nn.Linear(inputs, outputs)
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)
        return nn.Sequential(layer, nn.LeakyReLU(LEAK), nn.Dropout(self.config.parser_dropout))

    def forward(
        self,
        input_ids: Tensor,
        first_tokens: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> ParserOutput:
        """Scores of the words whose first tokens are `first_tokens` int64 [B, W], −1 where a sentence has fewer, in
        rows `input_ids` [B, L]; `others` are further arguments of the backbone."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        top: Tensor = outputs.last_hidden_state
        is_word = first_tokens >= 0
        words = self.dropout(top.take_along_dim(first_tokens.clamp(min=0).unsqueeze(-1), 1))
        root = self.root.to(words.dtype).expand(len(words), 1, -1)
        heads = torch.cat([root, words], dim=1)
        arcs = self.arcs(self.arc_dependents(words), self.arc_heads(heads)).squeeze(-1).float()
        # no word is its own head, and what stands for no word is no one's
        is_head = torch.cat([is_word.new_ones(len(words), 1), is_word], dim=1).unsqueeze(1)
        own = torch.eye(words.shape[1], dtype=torch.bool, device=words.device)
        own = torch.cat([own.new_zeros(len(own), 1), own], dim=1)
        arcs = arcs.masked_fill(~is_head | own, float("-inf"))
        relations = self.relations(self.relation_dependents(words), self.relation_heads(heads))
        return ParserOutput(arcs, relations, outputs.hidden_states)


class Biaffine(nn.Module):
    """Scores of every pair of a dependent d and a head h: dᵀ U h + v · h, and w · d + b where they are `of_dependents`,
    which change nothing where only the heads of one word are compared.

    Args:
        width: of d and h.
        scores: number of scores of a pair.
        of_dependents: whether a score also depends on the dependent alone, and has a bias.
    """

    def __init__(self, width: int, scores: int, *, of_dependents: bool) -> None:
        super().__init__()
        self.pairs = nn.Parameter(torch.empty(scores, width, width))
        for matrix in self.pairs:
            nn.init.xavier_uniform_(matrix)
        self.of_heads = nn.Linear(width, scores, bias=of_dependents)
        self.of_dependents = nn.Linear(width, scores, bias=False) if of_dependents else None

    def forward(self, dependents: Tensor, heads: Tensor) -> Tensor:
        """[B, W, K, scores] of `dependents` [B, W, D] and `heads` [B, K, D]."""
        pairs: Tensor = torch.einsum("bwd,rde,bke->bwkr", dependents, self.pairs.to(dependents.dtype), heads)
        pairs = pairs + self.of_heads(heads).unsqueeze(1)
        return pairs if self.of_dependents is None else pairs + self.of_dependents(dependents).unsqueeze(2)
