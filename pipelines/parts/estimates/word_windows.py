"""Gradients of word2vec's predictions, by matrix products over a batch of windows (Mikolov et al. 2013, arXiv:1301.3781
and arXiv:1310.4546).

Shapes: N windows, W words on each side of a centre at most, S inputs of a window (2 W + 1 words, or their mean alone),
C candidates of a window (its centre and noise words, or the nodes of its path), H elements of a vector, P = N + 2 W
words of the text of which the windows are made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST = 1e-30
"""Probability below which a prediction adds no more to the loss."""


class Candidates(NamedTuple):
    """What the inputs of each window are to tell apart: rows of the table of output vectors."""

    rows: Tensor
    """int64 [N, C]."""
    targets: Tensor
    """float32 [N or 1, C]: 1 for the centre, or a turn to the right; else 0."""
    real: Tensor
    """float32 [N, C]: 0 for what counts nothing, as a noise word that is the centre itself; else 1."""


@dataclass(frozen=True)
class WordWindows:
    """Windows of consecutive words."""

    low: Tensor
    """int64 [N]: first word of each window, from 0 to P."""
    high: Tensor
    """int64 [N]: the first one after it. The centre, word n + W, belongs to the range and is none of its neighbours."""
    reach: int
    """W."""

    @property
    def counts(self) -> Tensor:
        """int64 [N]: number of neighbours."""
        return self.high - self.low - 1

    @property
    def neighbours(self) -> Tensor:
        """bool [N, 2 W + 1]: which of the words around each centre are its neighbours."""
        import torch

        offsets = torch.arange(2 * self.reach + 1)
        words = torch.arange(len(self.low)).unsqueeze(1) + offsets
        inside = (words >= self.low.unsqueeze(1)) & (words < self.high.unsqueeze(1))
        return inside & (offsets != self.reach)


class Gradients(NamedTuple):
    """Gradients of the loss of a batch."""

    words: Tensor
    """[P, H]: of the input vectors of the words."""
    outputs: Tensor
    """[N, C, H]: of the output vectors of the candidates."""
    errors: Tensor
    """[N, C, S]: derivatives by the scores."""

    @property
    def loss(self) -> Tensor:
        """[]: Σ over predictions of −log σ(±score). An error of e is a probability of 1 − |e| of what is right."""
        return -(1 - self.errors.abs()).clamp(min=SMALLEST).log().sum()


def predict(inputs: Tensor, real: Tensor, outputs: Tensor, candidates: Candidates) -> Tensor:
    """Derivatives [N, C, S] of the loss by the scores of every candidate from every input.

    `inputs` [N, S, H] count where `real` [N, S] is 1; `outputs` [N, C, H].
    """
    scores = outputs.bmm(inputs.transpose(1, 2))
    errors = scores.sigmoid_().sub_(candidates.targets.unsqueeze(2))
    return errors.mul_(candidates.real.unsqueeze(2)).mul_(real.unsqueeze(1))


def skip_gram(
    vectors: Tensor, windows: WordWindows, outputs: Tensor, candidates: Candidates, shares: Tensor | None = None
) -> Gradients:
    """Gradients where each neighbour, with its vector in `vectors` [P, H], predicts the centre.

    `shares` [N, C] multiplies the gradients of `outputs` [N, C, H] only.
    """
    reach, width = windows.reach, vectors.shape[1]
    around = vectors.as_strided((len(windows.low), 2 * reach + 1, width), (width, width, 1))
    errors = predict(around, windows.neighbours.to(vectors.dtype), outputs, candidates)
    to_inputs = errors.transpose(1, 2).bmm(outputs)
    to_words = vectors.new_zeros(vectors.shape)
    for offset in range(2 * reach + 1):
        to_words[offset : offset + len(windows.low)] += to_inputs[:, offset]
    return Gradients(to_words, _shared(errors, shares).bmm(around), errors)


def cbow(
    vectors: Tensor, windows: WordWindows, outputs: Tensor, candidates: Candidates, shares: Tensor | None = None
) -> Gradients:
    """Gradients where the mean of all neighbours predicts the centre.

    Sums over windows are differences of running sums, whose cost does not depend on the reach; and so are, transposed,
    the gradients of the words in them.
    """
    import torch

    counts = windows.counts.to(vectors.dtype).unsqueeze(1)
    each = 1 / counts.clamp(min=1)
    centers = slice(windows.reach, windows.reach + len(windows.low))
    running = torch.cat([vectors.new_zeros(1, vectors.shape[1]), vectors.cumsum(0)])
    means = (running.index_select(0, windows.high) - running.index_select(0, windows.low) - vectors[centers]) * each
    errors = predict(means.unsqueeze(1), (counts > 0).to(vectors.dtype), outputs, candidates)
    to_means = errors.transpose(1, 2).bmm(outputs).squeeze(1) * each
    changes = vectors.new_zeros(len(vectors) + 1, vectors.shape[1])
    changes.index_add_(0, windows.low, to_means).index_add_(0, windows.high, to_means, alpha=-1)
    to_words = changes.cumsum(0)[:-1]
    to_words[centers] -= to_means
    return Gradients(to_words, _shared(errors, shares) * means.unsqueeze(1), errors)


def _shared(errors: Tensor, shares: Tensor | None) -> Tensor:
    return errors if shares is None else errors * shares.unsqueeze(2)
