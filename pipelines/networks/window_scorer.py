"""A network that scores windows of words: text is to score higher than the same window with another word in its centre
(Collobert et al. 2011, arXiv:1103.0398, §3.3.1 and §4.2).

    f(x) = v · hardtanh(Σ over offsets d  A_d e(w_d) + b)

The centre is one of the offsets, 0, so that all others are summed once for a window, whatever stands in its centre.
Shapes: B rows of L tokens, N windows, 1 + K candidates for the centre, U different ones in a batch, E the width of a
word's vector, H of the hidden layer, W words on each side.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, hardtanh
from transformers import initialization as init

from pipelines.networks.word_vectors import WordVectorsConfig, WordVectorsModel, WordVectorsPreTrainedModel


class WindowScorer(WordVectorsPreTrainedModel):
    """The table of word vectors, and the layers that score a window of them."""

    def __init__(self, config: WordVectorsConfig, window: int, hidden: int) -> None:
        super().__init__(config)
        self.window = window
        self.word_vectors = WordVectorsModel(config)
        self.outside = nn.Parameter(torch.zeros(config.hidden_size))
        """[E]: the vector of what is beyond the row or the document."""
        self.neighbours = nn.Linear(config.hidden_size, 2 * window * hidden, bias=False)
        """A_d of each offset but 0, from −W to W."""
        self.centre = nn.Linear(config.hidden_size, hidden)
        """A_0 and b."""
        self.score = nn.Linear(hidden, 1, bias=False)
        """v; a constant would change no difference of scores."""
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Layers in ± √3 / √inputs of the layer, so that their variance is that of 1 / √inputs (§4.4); vectors in ± 1,
        as large as the rates of §4.4 make them."""
        if isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -1.0, 1.0)
        elif isinstance(module, nn.Linear):
            inputs = (2 * self.window + 1) * module.in_features if module is not self.score else module.in_features
            bound = (3 / inputs) ** 0.5
            init.uniform_(module.weight, -bound, bound)
            if module.bias is not None:
                init.zeros_(module.bias)

    def forward(
        self, input_ids: Tensor, documents: Tensor, center_tokens: Tensor, centers: Tensor, negatives: Tensor
    ) -> Tensor:
        """Scores [N, 1 + K] of windows with their own centres, then with `negatives` [N, K] in their place.

        `input_ids`, `documents` and `center_tokens` are [B, L]: ids, the number of the document of each token, and 1
        for the tokens that are centres, whose ids are `centers` [N]. A negative that equals the centre scores −∞ and so
        does not contribute to the loss.
        """
        around = self.around(input_ids, documents)[center_tokens > 0]
        candidates = torch.cat([centers.unsqueeze(1), negatives], 1)
        words, positions = torch.unique(candidates, return_inverse=True)
        # a word is often drawn several times, and its part of the sum is the same each time
        inside = embedding(positions, self.centre(self.word_vectors.embeddings(words)))
        scores = self.score(hardtanh(around.unsqueeze(1) + inside)).squeeze(-1)
        collisions = (candidates == centers.unsqueeze(1)).index_fill(1, torch.zeros_like(centers[:1]), False)
        result: Tensor = scores.masked_fill(collisions, -torch.inf)
        return result

    def around(self, input_ids: Tensor, documents: Tensor) -> Tensor:
        """[B, L, H]: Σ A_d e(w_d) over the offsets of each token but 0, within its document."""
        rows, length = input_ids.shape
        # a layer may compute in half precision, and many terms are summed
        parts = self.neighbours(self.word_vectors.embeddings(input_ids)).to(self.outside.dtype)
        parts = parts.view(rows, length, 2 * self.window, -1)
        beyond = self.neighbours(self.outside.unsqueeze(0)).to(self.outside.dtype).view(2 * self.window, -1)
        total: Tensor = beyond.sum(0).expand(rows, length, -1)
        offsets = [offset for offset in range(-self.window, self.window + 1) if offset]
        for number, offset in enumerate(offsets):
            shift = min(abs(offset), length)
            here, there = slice(shift, None), slice(None, length - shift)
            if offset > 0:
                here, there = there, here
            same = (documents[:, here] == documents[:, there]).unsqueeze(-1)
            added = torch.where(same, parts[:, there, number] - beyond[number], 0.0)
            # 0 where no token of the row is at this offset
            blank = added.new_zeros(rows, shift, added.shape[-1])
            total = total + torch.cat([blank, added] if offset < 0 else [added, blank], 1)
        return total
