"""Writing texts token by token: the most probable token each time, or beam search with a length penalty.

Beam search is that of transformers' `generate`, with its defaults: the score of a text of n tokens, its end token
included, is Σ log p / n^α. Wu et al. 2016 (arXiv:1609.08144, eq. 14) divide by ((5 + n) / 6)^α instead, and prune by
the score of the best text; either way α = 0 compares likelihoods, and longer texts gain by a larger α.

Shapes: B sources, K beams, R texts in a step, T the most tokens of a text, V the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

NEVER = -1.0e9
"""Added to the score of what may not be chosen; not −∞, which no sum restores."""


class NextToken(Protocol):
    """What a network gives the next token of several texts. It keeps the state of each of them from call to call."""

    def __call__(self, parents: Tensor, last: Tensor | None) -> Tensor:
        """float32 [R, V]: log-probabilities of the next token of R texts.

        Text r continues text `parents[r]` (int64 [R]) of the call before by the token `last[r]` (int64 [R]). In the
        first call `last` is None: the texts begin, and `parents` are 0 … B − 1, the numbers of their sources.
        """
        ...


@dataclass(frozen=True)
class Writing:
    """How texts are written."""

    longest: int
    """Most tokens of a text, its end token included."""
    end: int
    """Id of the token that ends a text."""
    pad: int
    """Id of the token after the end of a text."""
    beams: int = 1
    """Texts that are continued for each source; 1: the most probable token each time."""
    length_penalty: float = 1.0
    """α, the exponent of the length by which the log-likelihood of a text is divided; of no effect with one beam."""

    def write(self, scores: NextToken, sources: int, device: torch.device) -> Tensor:
        """int64 [B, up to `longest`]: the text of each of `sources` sources, up to its end, then `pad`."""
        rows = torch.arange(sources, device=device)
        return self._greedy(scores, rows) if self.beams == 1 else self._search(scores, rows)

    def _greedy(self, scores: NextToken, rows: Tensor) -> Tensor:
        written, last = list[Tensor](), None
        unfinished = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        while len(written) < self.longest and bool(unfinished.any()):
            last = torch.where(unfinished, scores(rows, last).argmax(-1), self.pad)
            written.append(last)
            unfinished = unfinished & (last != self.end)
        return torch.stack(written, dim=1)

    def _search(self, scores: NextToken, rows: Tensor) -> Tensor:
        beams, sources = self.beams, len(rows)
        texts = rows.new_full((sources, beams, self.longest), self.pad)
        # all beams of a source begin alike: only those of the first one are candidates
        running = torch.zeros(sources, beams, device=rows.device)
        running[:, 1:] = NEVER
        best, best_scores = texts.clone(), torch.full_like(running, NEVER)
        complete = torch.zeros_like(running, dtype=torch.bool)
        improvable = torch.ones(sources, 1, dtype=torch.bool, device=rows.device)
        following = scores(rows, None).repeat_interleave(beams, dim=0)
        for length in range(1, self.longest + 1):
            size, divisor = following.shape[1], length**self.length_penalty
            total = (following.view(sources, beams, size) + running.unsqueeze(-1)).flatten(1)
            # twice as many as there are beams: as many as can end still leave that many to continue
            top, index = total.topk(2 * beams)
            continued, token = index // size, index % size
            candidates = _chosen(texts, continued)
            candidates[:, :, length - 1] = token
            ended = (token == self.end) | (length == self.longest)
            running, kept = (top + NEVER * ended).topk(beams)
            # only an end among the best candidates ends a text, and none where no text can become better
            ends = ended & (torch.arange(2 * beams, device=rows.device) < beams)
            reached = top / divisor + NEVER * ~(ends & improvable)
            best_scores, chosen = torch.cat([best_scores, reached], dim=1).topk(beams)
            best = _chosen(torch.cat([best, candidates], dim=1), chosen)
            complete = torch.cat([complete, ends], dim=1).gather(1, chosen)
            worst = torch.where(complete, best_scores.amin(1, keepdim=True), NEVER)
            improvable = improvable & (running[:, :1] / divisor > worst).any(1, keepdim=True)
            if not bool(improvable.any()) or bool(ended.all()):
                break
            texts = _chosen(candidates, kept)
            parents = rows.unsqueeze(1) if length == 1 else rows.unsqueeze(1) * beams + continued.gather(1, kept)
            following = scores(parents.expand(-1, beams).flatten(), token.gather(1, kept).flatten())
        return best[:, 0]


def _chosen(texts: Tensor, index: Tensor) -> Tensor:
    """[B, C, T]: the texts `index` [B, C] of each source, of `texts` [B, N, T]."""
    return texts.gather(1, index.unsqueeze(-1).expand(-1, -1, texts.shape[-1]))
