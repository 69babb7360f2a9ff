"""Edge probing: labels of spans, or of pairs of spans, predicted from hidden states, and the layers that they are read
from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError, RecipeError
from pipelines.judging.probes import LAYERS, ExampleProbe, Observation

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from pipelines.judging.probes.model import ProbedModel, WordStates
    from pipelines.task_families import Row, TaskFamily

BATCH = 64
"""Spans, or pairs of spans, per training step."""


@dataclass(frozen=True)
class Spans:
    """Labelled spans, or pairs of spans, one per row."""

    sentences: NDArray[np.int64]
    """Index of the sentence of each, [N]."""
    words: NDArray[np.int64]
    """Rows of the words of each span, [N, spans, widest]; −1 is padding."""
    labels: list[str]


class EdgeProbe(ExampleProbe, name="edge"):
    """Entity types, or relations between words and their heads, predicted from their spans alone (Tenney et al. 2019).

    A learned mixture of the layers (Peters et al. 2018, eq. 1) is projected, pooled over each span by self-attention,
    and classified by a perceptron with one hidden layer; labels are mutually exclusive, so accuracy equals the paper's
    micro-F1. Layer ℓ is scored by a probe that mixes layers 0 to ℓ only: the gains by layer give the expected layer
    (arXiv:1905.05950, §3.2), the weights of the probe over all layers the centre of gravity.
    """

    paper = "arXiv:1905.06316"
    reads = frozenset({"tagging", "dependency_parsing"})
    metrics = ("accuracy",)

    projected: PositiveInt = 64
    """Width of the projected states and of the hidden layer; 256 in the paper."""
    epochs: PositiveInt = 10
    """Passes over the training spans."""
    lr: float = Field(3e-3, gt=0)
    """Adam's learning rate, with linear decay to zero."""

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"epochs": min(self.epochs, 2)})

    def observe(self, model: ProbedModel) -> Observation:
        train, test = (model.word_states(table, self.examples) for table in self.tables)
        widths = sorted({layer.shape[1] for layer in train.layers})
        if len(widths) > 1:
            raise RecipeError(
                f"stage {model.subject.stage!r}: its layers have the widths {', '.join(map(str, widths))} and cannot "
                "be mixed; remove it from the probe edge"
            )
        known, tested = (
            spans_of(model.family, model.examples.rows(table)[: self.examples], vectors)
            for table, vectors in zip(self.tables, (train, test), strict=True)
        )
        if not known.labels or not tested.labels:
            raise DataError("probe edge: no span of the examples fits into the row; raise budget.length")
        labels = sorted(set(known.labels))
        sentences = len(test.begins) - 1
        statistics = np.zeros((len(test.layers), sentences, 2))
        statistics[..., 1] = np.bincount(tested.sentences, minlength=sentences)
        shares: list[float] = []
        for layer in range(len(test.layers)):
            network = self.fit(train.layers[: layer + 1], known, labels, model.seed)
            predicted = predictions(network, test.layers[: layer + 1], tested.words)
            hits = [labels[choice] == label for choice, label in zip(predicted, tested.labels, strict=True)]
            statistics[layer, :, 0] = np.bincount(tested.sentences, hits, sentences)
            shares = network.mix.shares
        gains = np.diff([self.score("accuracy", one) for one in statistics])
        numbers = np.arange(len(shares))
        notes = {
            "spans": len(tested.labels),
            "labels": len(labels),
            "mix": shares,
            "centre_of_gravity": float(numbers @ np.asarray(shares)),
            # undefined without a gain over all layers
            "expected_layer": float(numbers[1:] @ gains / gains.sum()) if gains.sum() > 0 else None,
        }
        return Observation({LAYERS: statistics}, notes=notes)

    def fit(self, layers: Sequence[NDArray[np.float32]], spans: Spans, labels: Sequence[str], seed: int) -> Any:
        """The probe's network over a mixture of `layers`, each [words, H], trained on `spans` with a seeded
        initialisation."""
        import torch
        from torch.nn.functional import cross_entropy

        generator = torch.Generator().manual_seed(seed)
        indices = {label: index for index, label in enumerate(labels)}
        targets = torch.tensor([indices[label] for label in spans.labels])
        states = [torch.from_numpy(layer) for layer in layers]
        words = torch.from_numpy(spans.words)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = span_network(len(layers), layers[0].shape[1], self.projected, words.shape[1], len(labels))
        optimizer = torch.optim.Adam(network.parameters(), lr=self.lr)
        steps = self.epochs * -(-len(targets) // BATCH)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
        for _ in range(self.epochs):
            for chosen in torch.split(torch.randperm(len(targets), generator=generator), BATCH):
                optimizer.zero_grad()
                loss: Any = cross_entropy(network(states, words[chosen]), targets[chosen])
                loss.backward()
                optimizer.step()
                schedule.step()
        return network.eval()

    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        right, total = statistics.sum(axis=0)
        return float(right / total) if total else 0.0


def predictions(network: nn.Module, layers: Sequence[NDArray[np.float32]], words: NDArray[np.int64]) -> list[int]:
    """Predicted label index of each row of `words` [N, spans, widest]."""
    import torch

    states = [torch.from_numpy(layer) for layer in layers]
    with torch.inference_mode():
        parts = [network(states, part).argmax(-1) for part in torch.split(torch.from_numpy(words), 16 * BATCH)]
    labels: list[int] = torch.cat(parts).tolist()
    return labels


def spans_of(family: TaskFamily, rows: Sequence[Row], states: WordStates) -> Spans:
    """Entities with their types, or pairs of word and head with their relations; spans that are not fully covered are
    omitted."""
    from pipelines.task_families.tagging import entities

    covered: list[tuple[int, list[list[int]], str]] = []
    for sentence, row in enumerate(rows):
        first = int(states.begins[sentence])
        gold: Any = family.gold(row)
        if "heads" in family.columns:
            labelled = [([[word], [head - 1]], label) for word, (head, label) in enumerate(gold) if head > 0]
        else:
            labelled = [([list(range(begin, end))], label) for begin, end, label in entities(gold)]
        for spans, label in labelled:
            rows_of_words = [[first + word for word in span] for span in spans]
            if all(states.covered[row] for span in rows_of_words for row in span):
                covered.append((sentence, rows_of_words, label))
    widest = max((len(span) for _, spans, _ in covered for span in spans), default=1)
    words = np.full((len(covered), len(covered[0][1]) if covered else 1, widest), -1, dtype=np.int64)
    for index, (_, spans, _) in enumerate(covered):
        for number, span in enumerate(spans):
            words[index, number, : len(span)] = span
    return Spans(np.asarray([one[0] for one in covered], dtype=np.int64), words, [one[2] for one in covered])


def span_network(layers: int, width: int, projected: int, spans: int, labels: int) -> Any:
    """(states of each layer [words, H], words of each span [B, spans, widest]) → logits [B, labels]."""
    import torch
    from torch import nn

    class Mix(nn.Module):
        """γ · Σⱼ sⱼ · hⱼ with s = softmax(w) (Peters et al. 2018, eq. 1)."""

        def __init__(self) -> None:
            super().__init__()
            self.weights, self.gamma = nn.Parameter(torch.zeros(layers)), nn.Parameter(torch.ones(()))

        @property
        def shares(self) -> list[float]:
            shares: list[float] = self.weights.detach().double().softmax(0).tolist()
            return shares

        def forward(self, states: Sequence[Tensor], words: Tensor) -> Tensor:
            shares = self.weights.softmax(0)
            mixed: Tensor = self.gamma * sum(share * layer[words] for share, layer in zip(shares, states, strict=True))
            return mixed

    class SpanNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = Mix()
            self.project = nn.ModuleList(nn.Linear(width, projected) for _ in range(spans))
            self.attend = nn.ModuleList(nn.Linear(projected, 1) for _ in range(spans))
            self.classify = nn.Sequential(
                nn.Linear(spans * projected, projected),
                nn.Tanh(),
                nn.LayerNorm(projected),
                nn.Linear(projected, labels),
            )

        def forward(self, states: Sequence[Tensor], words: Tensor) -> Tensor:
            pooled = []
            for number, (project, attend) in enumerate(zip(self.project, self.attend, strict=True)):
                span = words[:, number]
                projected_states = project(self.mix(states, span.clamp(min=0)))
                weights = attend(projected_states).squeeze(-1).masked_fill(span < 0, float("-inf")).softmax(-1)
                pooled.append((weights.unsqueeze(-1) * projected_states).sum(1))
            scores: Tensor = self.classify(torch.cat(pooled, -1))
            return scores

    return SpanNetwork()
