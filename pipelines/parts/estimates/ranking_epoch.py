"""One pass that ranks the true last word of each window above a random one, a unit of work (Huang et al. 2012, §2).

Shapes: V words, H elements of a vector, N windows of W words before their last, M words of the documents of a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.estimates.word_frequencies import STATE, noise_probabilities

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from pipelines.parts.estimates import TokenFile

VECTORS = "vectors"
WORDS = "words.weight"
"""Name of the table of words among the weights of the scorer."""
SQUARES = "squares of "


@dataclass(frozen=True)
class RankingOptions:
    """What a pass depends on besides its text and the vectors that it begins with."""

    window: int
    """Words before the last one of a window."""
    hidden: int
    document: bool
    """Whether the document is scored beside the window."""
    power: float
    """Exponent of counts in the distribution of random words."""
    rate: float
    batch_words: int
    seed: int = 0


@dataclass(frozen=True)
class RankingEpoch:
    """A pass over all windows in an order that depends on its number and the seed."""

    home: Path
    """Folder with a folder for each finished pass."""
    phase: str
    epoch: int
    text: TokenFile
    options: RankingOptions
    start: Path
    """File with the `vectors` [V, H] before the first pass, and how `informative` [V] each word is."""

    @property
    def name(self) -> str:
        return f"{self.phase}-{self.epoch}"

    def __call__(self, folder: Path) -> None:
        import torch

        from pipelines.networks.ranking_scorer import RankingScorer, ranking_hinge

        with np.load(self.start) as stored:
            begin, weights = stored[VECTORS], torch.from_numpy(stored["informative"])
        torch.manual_seed(self.options.seed)
        size, width = begin.shape
        scorer = RankingScorer(size, width, self.options.window, self.options.hidden, self.options.document)
        squares = self._continue(scorer, begin)
        random, loss = np.random.default_rng((self.epoch, self.options.seed)), 0.0
        tokens = self.text.tokens
        ends = np.flatnonzero(tokens == self.text.end)
        edges = np.cumsum(noise_probabilities(self.text, self.options.power))
        for first in random.permutation(np.arange(0, len(tokens), self.options.batch_words)).tolist():
            batch = windows_of(tokens, ends, first, self.options.batch_words, self.options.window, self.text.special)
            if not len(batch.last):
                continue
            other = np.searchsorted(edges, random.random(len(batch.last)) * edges[-1])
            candidates = torch.from_numpy(np.stack([batch.last, other], axis=1))
            documents = scorer.means(
                torch.from_numpy(batch.words), torch.from_numpy(batch.owners), batch.documents, weights
            )[torch.from_numpy(batch.document)]
            value = ranking_hinge(scorer(torch.from_numpy(batch.windows), candidates, documents))
            scorer.zero_grad()
            torch.autograd.backward(value)
            _descend(scorer, squares, self.options.rate)
            loss += float(value.detach())
        tables: dict[str, Any] = {name: one.detach().numpy() for name, one in scorer.named_parameters()}
        tables |= {SQUARES + name: one.numpy() for name, one in squares.items()}
        np.savez(folder / STATE, loss=loss, **{VECTORS: tables[WORDS]}, **tables)
        if self.epoch > 1:  # this pass replaces the one before the last
            (self.home / f"{self.phase}-{self.epoch - 2}" / STATE).unlink(missing_ok=True)

    def _continue(self, scorer: nn.Module, begin: NDArray[np.float32]) -> dict[str, Any]:
        """Give the scorer the weights after the pass before, and return its sums of squared gradients."""
        import torch

        parameters = dict(scorer.named_parameters())
        squares = {name: torch.zeros_like(one) for name, one in parameters.items()}
        with torch.no_grad():
            if not self.epoch:
                parameters[WORDS].copy_(torch.from_numpy(begin))
                return squares
            with np.load(self.home / f"{self.phase}-{self.epoch - 1}" / STATE) as stored:
                for name, one in parameters.items():
                    one.copy_(torch.from_numpy(stored[name]))
                    squares[name].copy_(torch.from_numpy(stored[SQUARES + name]))
        return squares


@dataclass(frozen=True)
class WindowBatch:
    """The windows that end in a run of a text, and the words of their documents."""

    windows: NDArray[np.int64]
    """[N, W]: the words before the last; the end of a document stands for those before its first word."""
    last: NDArray[np.int64]
    """[N]."""
    document: NDArray[np.int64]
    """[N]: number of each window's document among those of the batch."""
    words: NDArray[np.int64]
    """[M]: all words of these documents."""
    owners: NDArray[np.int64]
    """[M]: their documents."""
    documents: int
    """Number of documents."""


def windows_of(
    tokens: NDArray[Any], ends: NDArray[np.int64], first: int, size: int, window: int, special: tuple[int, ...]
) -> WindowBatch:
    """The windows whose last word is one of the `size` tokens from `first` on; special tokens are no last words.

    `ends` are the positions of the ends of documents.
    """
    stop = min(first + size, len(tokens))
    position = np.arange(first, stop)
    position = position[~np.isin(tokens[first:stop], special)]
    number = np.searchsorted(ends, position)
    begins = np.concatenate([[0], ends + 1])
    before = position[:, None] - np.arange(window, 0, -1)
    inside = before >= begins[number][:, None]
    end = int(tokens[ends[0]]) if len(ends) else 0
    windows = np.where(inside, tokens[np.maximum(before, 0)].astype(np.int64), end)
    touched, document = np.unique(number, return_inverse=True)
    spans = [(int(begins[one]), int(ends[one]) if one < len(ends) else len(tokens)) for one in touched]
    words = [tokens[low:high].astype(np.int64) for low, high in spans]
    owners = np.repeat(np.arange(len(spans)), [high - low for low, high in spans])
    joined = np.concatenate(words) if words else np.zeros(0, dtype=np.int64)
    return WindowBatch(windows, tokens[position].astype(np.int64), document, joined, owners, len(spans))


def _descend(scorer: nn.Module, squares: dict[str, Any], rate: float) -> None:
    """One step of AdaGrad on all weights."""
    import torch

    with torch.no_grad():
        for name, one in scorer.named_parameters():
            if one.grad is not None:
                squares[name].addcmul_(one.grad, one.grad)
                one.addcdiv_(one.grad, squares[name].sqrt().add_(1e-10), value=-rate)
