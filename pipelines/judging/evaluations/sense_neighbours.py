"""Senses of words in context: whether the nearest occurrence of a word has the same meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from pipelines.judging.certainty.resampling import interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.figures import RecordedFigure, quotient
from pipelines.judging.occurrences import Occurrence, cosines, occurrence_states, read_senses
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.subjects import Subject
    from pipelines.task_families import TaskFamily

SAMPLE = "sense_neighbours"
DIGITS = 4
ALIKE = 1e-5
"""Cosines that differ by less are equal: float32 rounds the states of one vector in several sentences."""
SHOWN = 6
"""Occurrences of which the record shows the nearest one, of each model."""


class SenseNeighboursEvaluation(Evaluation, name="sense_neighbours"):
    """Share of occurrences whose nearest occurrence of the same word, by cosine, is in the same sense.

    A model with one vector for each word sees all occurrences at the same distance: ties count by the share of the
    right sense among them, which gives such a model the agreement of chance. The model's last layer counts; the record
    has all layers. Words are the items of the intervals, since the occurrences of a word depend on each other (after
    Peters et al. 2018, §5.3, table 4).
    """

    paper = "arXiv:1802.05365"
    judges: ClassVar[Literal["task models", "language models", "models"]] = "models"
    incompatible_abilities: ClassVar[Mapping[Ability, str]] = {Ability.COUNTED: "tables of counts and no vectors"}

    senses: str
    """A file of tab-separated lines: word, sense, sentence that holds the word once."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return (RecordedFigure("agreement_of_senses", SAMPLE, quotient(1), bounds=(0.0, 1.0)),)

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (Path(self.senses),)

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises DataError for a malformed file, RecipeError for a model without hidden states."""
        occurrences = read_senses(Path(self.senses))
        words = list(dict.fromkeys(one.word for one in occurrences))
        score = quotient(1)
        models, headline = [], {}
        for stage, subjects in context.subjects.items():
            layers = [self._layers(subject, occurrences) for subject in subjects]
            for subject, of_layers in zip(subjects, layers, strict=True):
                context.keep(SAMPLE, subject, by_word(of_layers[-1][0], occurrences))
            last = [by_word(of_layers[-1][0], occurrences) for of_layers in layers]
            estimate = interval(score, last, context.seed)
            mean = np.mean([of_layers[-1][0] for of_layers in layers], axis=0)
            models.append(
                {
                    "stage": stage,
                    "seeds": [subject.seed for subject in subjects],
                    "agreement": estimate.record(),
                    "layers": [
                        round(float(np.mean([of_layers[layer][0].mean() for of_layers in layers])), DIGITS)
                        for layer in range(len(layers[0]))
                    ],
                    "words": {
                        word: round(float(mean[[one.word == word for one in occurrences]].mean()), DIGITS)
                        for word in words
                    },
                    "shown": _shown(occurrences, layers[0][-1][1]),
                }
            )
            headline[f"agreement_of_senses/{stage}"] = estimate.mean
        return {
            "senses": self.senses,
            "sentences": len(occurrences),
            "words": len(words),
            "chance": round(score(by_word(chance(occurrences), occurrences)), DIGITS),
            "models": models,
            "headline": headline,
        }

    def _layers(
        self, subject: Subject, occurrences: Sequence[Occurrence]
    ) -> list[tuple[NDArray[np.float64], NDArray[np.int64]]]:
        """`agreement` of each layer of a model."""
        from pipelines.models.backbone import open_backbone

        states = occurrence_states(*open_backbone(subject.folder), occurrences)
        return [agreement(layer, occurrences) for layer in states]


def agreement(
    states: NDArray[np.float32], occurrences: Sequence[Occurrence]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Whether the occurrence nearest to each, of the same word, is in the same sense, float64 [N], and its index, int64
    [N], −1 where several are equally near; then the first is their share of the same sense."""
    agrees, nearest = np.zeros(len(occurrences)), np.full(len(occurrences), -1, dtype=np.int64)
    for word in dict.fromkeys(one.word for one in occurrences):
        rows = np.asarray([row for row, one in enumerate(occurrences) if one.word == word])
        senses = np.asarray([occurrences[row].sense for row in rows])
        similar = cosines(states[rows], states[rows])
        np.fill_diagonal(similar, -np.inf)
        best = similar >= similar.max(1, keepdims=True) - ALIKE
        agrees[rows] = (best & (senses[:, None] == senses)).sum(1) / best.sum(1)
        nearest[rows] = np.where(best.sum(1) == 1, rows[similar.argmax(1)], -1)
    return agrees, nearest


def chance(occurrences: Sequence[Occurrence]) -> NDArray[np.float64]:
    """Share of the same sense among the other occurrences of each word, float64 [N]."""
    return agreement(np.zeros((len(occurrences), 1), dtype=np.float32), occurrences)[0]


def by_word(agrees: NDArray[np.float64], occurrences: Sequence[Occurrence]) -> NDArray[np.float64]:
    """The sum of `agrees` [N] over each word's occurrences, and their number, float64 [words, 2]."""
    words = list(dict.fromkeys(one.word for one in occurrences))
    index = np.asarray([words.index(one.word) for one in occurrences])
    return np.stack([np.bincount(index, agrees), np.bincount(index).astype(np.float64)], axis=1)


def _shown(occurrences: Sequence[Occurrence], nearest: NDArray[np.int64]) -> list[dict[str, str]]:
    """The first occurrence of each of the first words in their senses, and the nearest one to it."""
    first = {(one.word, one.sense): row for row, one in reversed(list(enumerate(occurrences)))}
    rows = sorted(first.values())[:SHOWN]
    return [
        {
            "word": occurrences[row].word,
            "sense": occurrences[row].sense,
            "text": occurrences[row].text,
            "nearest": occurrences[nearest[row]].text if nearest[row] >= 0 else "",
            "nearest_sense": occurrences[nearest[row]].sense if nearest[row] >= 0 else "",
        }
        for row in rows
    ]
