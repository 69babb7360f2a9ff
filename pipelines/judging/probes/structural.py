"""Syntax trees in the geometry of hidden states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError
from pipelines.judging.probes import LAYERS, ExampleProbe, Observation
from pipelines.judging.probes.trees import depths, distances, edges, spanning_tree

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.judging.probes.model import ProbedModel, WordStates

PUNCTUATION = "punct"
SHORTEST, LONGEST = 5, 50
"""Minimum and maximum number of words of the sentences over which Spearman's correlations are averaged (§4.1)."""
BATCH = 20
"""Sentences per training step, as in the paper's code."""


class StructuralProbe(ExampleProbe, name="structural"):
    """Whether a linear map of a layer turns squared distances of words into tree distances, and squared norms into
    depths.

    The distance and depth probes of Hewitt & Manning 2019, with the paper's metrics: undirected attachment score of the
    minimum spanning tree without punctuation (`uuas`), Spearman's correlation of predicted and true distances of each
    word, averaged by sentence length from 5 to 50 (`distance_spearman`), the root as the word of least depth
    (`root_accuracy`), and Spearman's correlation of depths (`depth_spearman`). Sentences with a word that is not
    covered are omitted.
    """

    paper = "doi:10.18653/v1/N19-1419"
    reads = frozenset({"dependency_parsing"})
    metrics = ("uuas", "distance_spearman", "root_accuracy", "depth_spearman")

    examples: PositiveInt = 1000
    """Maximum number of sentences read per table."""
    rank: PositiveInt = 64
    """Rows of the map; at most the width of the hidden states."""
    epochs: PositiveInt = 20
    """Passes over the training sentences."""
    lr: float = Field(1e-2, gt=0)
    """Adam's learning rate, with linear decay to zero."""

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"epochs": min(self.epochs, 2)})

    def observe(self, model: ProbedModel) -> Observation:
        train, test = (model.word_states(table, self.examples) for table in self.tables)
        rows, others = (model.examples.rows(table)[: self.examples] for table in self.tables)
        whole, tested = whole_sentences(train), whole_sentences(test)
        # the tree of a single word has no edge
        whole = [number for number in whole if len(rows[number]["heads"]) > 1]
        if not whole or not tested:
            raise DataError("probe structural: no sentence fits into budget.length tokens; raise it")
        trees = [list(rows[number]["heads"]) for number in whole]
        statistics = np.zeros((len(test.layers), len(tested), len(COLUMNS)))
        for layer, (states, judged) in enumerate(zip(train.layers, test.layers, strict=True)):
            sentences = [states[train.begins[number] : train.begins[number + 1]] for number in whole]
            maps = [
                self.fit(sentences, [truth(tree).astype(np.float32) for tree in trees], loss, model.seed)
                for truth, loss in ((distances, distance_loss), (depths, depth_loss))
            ]
            for index, number in enumerate(tested):
                words = judged[test.begins[number] : test.begins[number + 1]]
                row = others[number]
                kept = np.asarray([one.partition(":")[0] != PUNCTUATION for one in row["relations"]])
                statistics[layer, index] = judge(
                    squared_distances(words, maps[0]), squared_lengths(words, maps[1]), list(row["heads"]), kept
                )
        notes = {"sentences": len(tested), "not_covered": len(others) - len(tested), "rank": len(maps[0])}
        return Observation({LAYERS: statistics}, notes=notes)

    def fit(
        self, sentences: Sequence[NDArray[np.float32]], truths: Sequence[NDArray[np.float32]], loss: Any, seed: int
    ) -> NDArray[np.float64]:
        """The map B [rank, H] that minimises `loss` on the sentences, each [T, H], by Adam with a seeded
        initialisation."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        width = sentences[0].shape[1]
        # layers differ in scale: standardised, one learning rate suits all, and the scale is folded into B afterwards
        scale = float(np.concatenate([words - words.mean(axis=0) for words in sentences]).std()) or 1.0
        sentences = [words / np.float32(scale) for words in sentences]
        matrix = torch.empty(min(self.rank, width), width).uniform_(-0.05, 0.05, generator=generator).requires_grad_()
        optimizer = torch.optim.Adam([matrix], lr=self.lr)
        # batches have sentences of similar length; the order of the batches is random
        by_length = sorted(range(len(sentences)), key=lambda number: (len(sentences[number]), number))
        groups = [by_length[first : first + BATCH] for first in range(0, len(by_length), BATCH)]
        batches = [batch_of([sentences[n] for n in group], [truths[n] for n in group]) for group in groups]
        steps = self.epochs * len(batches)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
        for _ in range(self.epochs):
            for chosen in torch.randperm(len(batches), generator=generator).tolist():
                optimizer.zero_grad()
                loss(matrix, *batches[chosen]).backward()
                optimizer.step()
                schedule.step()
        result: NDArray[np.float64] = matrix.detach().double().numpy() / scale
        return result

    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        values = dict(zip(COLUMNS, statistics.T, strict=True))
        if metric == "uuas":
            return float(values["right"].sum() / max(1.0, values["arcs"].sum()))
        if metric == "root_accuracy":
            return float(values["root"].mean())
        counts = values["counts"] > 0
        if not counts.any():
            return 0.0
        column = values["distances" if metric == "distance_spearman" else "depths"][counts]
        lengths = values["length"][counts].astype(np.int64)
        totals, sentences = np.bincount(lengths, column), np.bincount(lengths)
        present = sentences > 0
        return float((totals[present] / sentences[present]).mean())


COLUMNS = ("right", "arcs", "root", "length", "counts", "distances", "depths")
"""Statistics of a sentence; `counts` is 1 if its length is among those that correlations are averaged over."""


def whole_sentences(states: WordStates) -> list[int]:
    """Indices of the sentences whose words are all covered."""
    missing = np.bincount(states.owners, ~states.covered, minlength=len(states.begins) - 1)
    return np.flatnonzero((missing == 0) & (np.diff(states.begins) > 0)).tolist()


def batch_of(
    sentences: Sequence[NDArray[np.float32]], truths: Sequence[NDArray[np.float32]]
) -> tuple[Tensor, Tensor, Tensor]:
    """Words [B, T, H], targets [B, T] or [B, T, T], and lengths [B]; padded with 0."""
    import torch

    longest = max(map(len, sentences))
    words = np.zeros((len(sentences), longest, sentences[0].shape[1]), dtype=np.float32)
    targets = np.zeros((len(sentences), *[longest] * truths[0].ndim), dtype=np.float32)
    for row, (sentence, truth) in enumerate(zip(sentences, truths, strict=True)):
        words[row, : len(sentence)] = sentence
        targets[row][tuple(slice(size) for size in truth.shape)] = truth
    return torch.from_numpy(words), torch.from_numpy(targets), torch.tensor([len(one) for one in sentences])


def distance_loss(matrix: Tensor, words: Tensor, truths: Tensor, lengths: Tensor) -> Tensor:
    """Mean over sentences s of 1/|s|² Σᵢⱼ |d(i, j) − ‖B(hᵢ − hⱼ)‖²| (Hewitt & Manning 2019, §3.2)."""
    import torch

    mapped = words @ matrix.T
    norms = (mapped**2).sum(-1)
    # ‖x − y‖² = ‖x‖² + ‖y‖² − 2xy avoids a tensor of all differences
    predicted = norms[:, :, None] + norms[:, None, :] - 2 * mapped @ mapped.transpose(1, 2)
    inside = torch.arange(words.shape[1]) < lengths[:, None]
    error = (predicted - truths).abs() * (inside[:, :, None] & inside[:, None, :])
    mean: Tensor = (error.sum((1, 2)) / lengths**2).mean()
    return mean


def depth_loss(matrix: Tensor, words: Tensor, truths: Tensor, lengths: Tensor) -> Tensor:
    """Mean over sentences s of 1/|s| Σᵢ |depth(i) − ‖Bhᵢ‖²| (Hewitt & Manning 2019, §3.3)."""
    import torch

    inside = torch.arange(words.shape[1]) < lengths[:, None]
    error = (((words @ matrix.T) ** 2).sum(-1) - truths).abs() * inside
    mean: Tensor = (error.sum(1) / lengths).mean()
    return mean


def squared_distances(words: NDArray[Any], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """[T, T]: ‖B(hᵢ − hⱼ)‖² (Hewitt & Manning 2019, eq. 1)."""
    mapped = words.astype(np.float64) @ matrix.T
    norms = (mapped**2).sum(-1)
    result: NDArray[np.float64] = np.maximum(norms[:, None] + norms[None, :] - 2 * mapped @ mapped.T, 0.0)
    return result


def squared_lengths(words: NDArray[Any], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """[T]: ‖Bhᵢ‖²."""
    result: NDArray[np.float64] = ((words.astype(np.float64) @ matrix.T) ** 2).sum(-1)
    return result


def judge(
    distance: NDArray[np.float64], depth: NDArray[np.float64], heads: Sequence[int], kept: NDArray[np.bool_]
) -> list[float]:
    """The statistics of one sentence of T words, in the order of `COLUMNS`; `kept` [T] is False for punctuation."""
    arcs = edges(heads, kept)
    right = len(arcs & spanning_tree(distance, kept))
    root = int(np.where(kept, depth, np.inf).argmin()) if kept.any() else int(depth.argmin())
    counts = SHORTEST <= len(heads) <= LONGEST
    return [
        right,
        len(arcs),
        float(heads[root] == 0),
        len(heads),
        float(counts),
        float(np.mean(rank_correlations(distance, distances(heads)))) if counts else 0.0,
        float(rank_correlations(depth[None], depths(heads)[None])[0]) if counts else 0.0,
    ]


def rank_correlations(predicted: NDArray[Any], true: NDArray[Any]) -> NDArray[np.float64]:
    """Spearman's correlation of each row of `predicted` [R, T] with that of `true`; 0 for a constant row."""
    from scipy.stats import rankdata

    a, b = (rankdata(values, axis=1) for values in (predicted, true))
    a, b = a - a.mean(1, keepdims=True), b - b.mean(1, keepdims=True)
    spread = np.sqrt((a**2).sum(1) * (b**2).sum(1))
    result: NDArray[np.float64] = np.divide((a * b).sum(1), spread, out=np.zeros(len(a)), where=spread > 0)
    return result
