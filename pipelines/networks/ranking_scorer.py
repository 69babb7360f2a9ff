"""How well a word ends a window, and suits the document around it (Collobert & Weston 2008; Huang et al. 2012, §2).

    window x₁ … x_W, word x ─▶ [x₁ … x_W; x] ─▶ tanh ─▶ local score  ─┐
    document d, word x      ─▶ [Σ w v / Σ w; x] ─▶ tanh ─▶ global score ─┴▶ +

Shapes: N windows of W words, C candidates for the last word of each, H elements of a vector, D hidden units.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class RankingScorer(nn.Module):
    """Tables and layers; without `document` the score is the local one alone."""

    def __init__(self, words: int, width: int, window: int, hidden: int, document: bool) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        # the first layer reads the candidate apart: what precedes it is the same for all candidates
        self.before, self.last = nn.Linear(window * width, hidden), nn.Linear(width, hidden, bias=False)
        self.local_score = nn.Linear(hidden, 1, bias=False)
        self.document = nn.Linear(width, hidden) if document else None
        self.in_document = nn.Linear(width, hidden, bias=False) if document else None
        self.global_score = nn.Linear(hidden, 1, bias=False) if document else None

    def forward(self, windows: Tensor, candidates: Tensor, documents: Tensor) -> Tensor:
        """[N, C]: scores of `candidates` int64 [N, C] after `windows` int64 [N, W] in documents whose mean vectors are
        `documents` [N, H]."""
        words = self.words(candidates)
        before = self.before(self.words(windows).flatten(1)).unsqueeze(1)
        scores: Tensor = self.local_score(torch.tanh(before + self.last(words)))
        if self.document is not None and self.in_document is not None and self.global_score is not None:
            hidden = torch.tanh(self.document(documents).unsqueeze(1) + self.in_document(words))
            scores = scores + self.global_score(hidden)
        return scores.squeeze(-1)

    def means(self, ids: Tensor, owners: Tensor, number: int, weights: Tensor) -> Tensor:
        """[`number`, H]: the mean vector of each document, of whose words `ids` [M] the documents are `owners` [M],
        weighted by `weights` [V]; 0 for a document without words of any weight."""
        shares = weights[ids].unsqueeze(1)
        sums = shares.new_zeros(number, self.words.embedding_dim).index_add(0, owners, self.words(ids) * shares)
        totals = shares.new_zeros(number, 1).index_add(0, owners, shares)
        return sums / totals.clamp(min=1e-6)


def ranking_hinge(scores: Tensor) -> Tensor:
    """Σ max(0, 1 − s + s′) over the windows: the true last word's score s, the first of `scores` [N, C], is to be above
    that of every other by a margin of 1 (Huang et al. 2012, eq. 1)."""
    return (1 - scores[:, :1] + scores[:, 1:]).clamp(min=0).sum()
