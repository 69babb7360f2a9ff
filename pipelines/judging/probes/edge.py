"""Edge probing: what two spans of a sentence are to each other, and from which layers it is read."""

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
"""Spans, or pairs of them, in a step of training."""


@dataclass(frozen=True)
class Spans:
    """What is asked about, one a row."""

    sentences: NDArray[np.int64]
    """[N]"""
    words: NDArray[np.int64]
    """[N, spans, widest]: the rows of the words of each span, −1 behind its last."""
    labels: list[str]


class EdgeProbe(ExampleProbe, name="edge"):
    """Types of entities, or relations of words to their heads, told from their spans alone (Tenney et al. 2019).

    A learned mixture of the layers (Peters et al. 2018, eq. 1) is projected, pooled over each span by self-attention, and
    classified by a perceptron with one hidden layer; labels exclude each other, so that its accuracy is the paper's micro-F1.
    Layer ℓ is scored by a probe that mixes layers 0 to ℓ only: what ℓ adds gives the expected layer (arXiv:1905.05950, §3.2),
    the weights of the probe of all layers the centre of gravity.
    """

    paper = "arXiv:1905.06316"
    reads = frozenset({"tagging", "dependency_parsing"})
    metrics = ("accuracy",)

    projected: PositiveInt = 64
    """Width of the projected states and of the hidden layer; 256 in the paper."""
    epochs: PositiveInt = 10
    """Passes over the training spans."""
    lr: float = Field(3e-3, gt=0)
    """Rate of Adam, which falls linearly to zero."""

    def tiny(self) -> Self:
        return super().tiny().model_copy(update={"epochs": min(self.epochs, 2)})

    def look(self, model: ProbedModel) -> Observation:
        train, test = (model.vectors(table, self.examples) for table in self.tables)
        widths = sorted({layer.shape[1] for layer in train.layers})
        if len(widths) > 1:
            raise RecipeError(
                f"stage {model.subject.stage!r}: its layers are {', '.join(map(str, widths))} wide and cannot be mixed; leave "
                "it out of the probe edge"
            )
        known, asked = (
            spans_of(model.family, model.examples.rows(table)[: self.examples], vectors)
            for table, vectors in zip(self.tables, (train, test), strict=True)
        )
        if not known.labels or not asked.labels:
            raise DataError("probe edge: no span of the examples is covered; raise budget.length")
        labels = sorted(set(known.labels))
        sentences = len(test.begins) - 1
        statistics = np.zeros((len(test.layers), sentences, 2))
        statistics[..., 1] = np.bincount(asked.sentences, minlength=sentences)
        shares: list[float] = []
        for layer in range(len(test.layers)):
            network = self.fit(train.layers[: layer + 1], known, labels, model.seed)
            said = answers(network, test.layers[: layer + 1], asked.words)
            hits = [labels[choice] == label for choice, label in zip(said, asked.labels, strict=True)]
            statistics[layer, :, 0] = np.bincount(asked.sentences, hits, sentences)
            shares = network.mix.shares
        gains = np.diff([self.score("accuracy", one) for one in statistics])
        numbers = np.arange(len(shares))
        notes = {
            "spans": len(asked.labels),
            "labels": len(labels),
            "mix": shares,
            "centre_of_gravity": float(numbers @ np.asarray(shares)),
            # where nothing is gained, or as much lost, no layer is expected
            "expected_layer": float(numbers[1:] @ gains / gains.sum()) if gains.sum() > 0 else None,
        }
        return Observation({LAYERS: statistics}, notes=notes)

    def fit(self, layers: Sequence[NDArray[np.float32]], spans: Spans, labels: Sequence[str], seed: int) -> Any:
        """The probe's network over a mixture of `layers`, each [words, H], trained on `spans` from a seeded start."""
        import torch
        from torch.nn.functional import cross_entropy

        generator = torch.Generator().manual_seed(seed)
        number = {label: index for index, label in enumerate(labels)}
        wanted = torch.tensor([number[label] for label in spans.labels])
        states = [torch.from_numpy(layer) for layer in layers]
        words = torch.from_numpy(spans.words)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = span_network(len(layers), layers[0].shape[1], self.projected, words.shape[1], len(labels))
        optimizer = torch.optim.Adam(network.parameters(), lr=self.lr)
        steps = self.epochs * -(-len(wanted) // BATCH)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
        for _ in range(self.epochs):
            for chosen in torch.split(torch.randperm(len(wanted), generator=generator), BATCH):
                optimizer.zero_grad()
                loss: Any = cross_entropy(network(states, words[chosen]), wanted[chosen])
                loss.backward()
                optimizer.step()
                schedule.step()
        return network.eval()

    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        right, asked = statistics.sum(axis=0)
        return float(right / asked) if asked else 0.0


def answers(network: nn.Module, layers: Sequence[NDArray[np.float32]], words: NDArray[np.int64]) -> list[int]:
    """The label of each row of `words` [N, spans, widest]."""
    import torch

    states = [torch.from_numpy(layer) for layer in layers]
    with torch.inference_mode():
        parts = [network(states, part).argmax(-1) for part in torch.split(torch.from_numpy(words), 16 * BATCH)]
    found: list[int] = torch.cat(parts).tolist()
    return found


def spans_of(family: TaskFamily, rows: Sequence[Row], vectors: WordStates) -> Spans:
    """Entities with their types, or words before their heads with their relations; what is not covered whole is left out."""
    from pipelines.task_families.tagging import entities

    found: list[tuple[int, list[list[int]], str]] = []
    for sentence, row in enumerate(rows):
        first = int(vectors.begins[sentence])
        gold: Any = family.gold(row)
        if "heads" in family.columns:
            asked = [([[word], [head - 1]], label) for word, (head, label) in enumerate(gold) if head > 0]
        else:
            asked = [([list(range(begin, end))], label) for begin, end, label in entities(gold)]
        for spans, label in asked:
            places = [[first + word for word in span] for span in spans]
            if all(vectors.covered[place] for span in places for place in span):
                found.append((sentence, places, label))
    widest = max((len(span) for _, places, _ in found for span in places), default=1)
    words = np.full((len(found), len(found[0][1]) if found else 1, widest), -1, dtype=np.int64)
    for index, (_, places, _) in enumerate(found):
        for number, span in enumerate(places):
            words[index, number, : len(span)] = span
    return Spans(np.asarray([one[0] for one in found], dtype=np.int64), words, [one[2] for one in found])


def span_network(layers: int, width: int, projected: int, spans: int, labels: int) -> Any:
    """(states of each layer [words, H], words of each span [B, spans, widest]) → scores [B, labels]."""
    import torch
    from torch import nn

    class Mix(nn.Module):
        """γ · Σⱼ sⱼ · hⱼ with s = softmax(w) (Peters et al. 2018, eq. 1)."""

        def __init__(self) -> None:
            super().__init__()
            self.weights, self.gamma = nn.Parameter(torch.zeros(layers)), nn.Parameter(torch.ones(()))

        @property
        def shares(self) -> list[float]:
            found: list[float] = self.weights.detach().double().softmax(0).tolist()
            return found

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
