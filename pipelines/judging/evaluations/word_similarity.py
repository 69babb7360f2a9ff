"""Similarity of words, or of short texts, by static vectors, against graded judgements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.judging.certainty.resampling import interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.word_vectors import EmbeddingTable, read_similarity
from pipelines.judging.figures import RecordedFigure
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily

FIGURE = "word_similarity"
GRADED = "pair_regression"
"""Family of the tasks whose examples are judgements."""
LEAST_PAIRS = 4
"""Fewest pairs whose ranks can be compared."""


class WordSimilarityEvaluation(Evaluation, name="word_similarity"):
    """Spearman's correlation of judgements with cosines of the input embeddings of each model (Hill, Reichart &
    Korhonen 2015).

    The judged pairs are those of a file, or the test table of a task that grades pairs: two words (WordSim, SimLex), or
    two texts, each of which has the mean of its words' vectors, all of length one. Special tokens are no words; a text
    without known words has a cosine of 0 with every other, so that models are compared on the same pairs.
    """

    paper = "Hill, Reichart & Korhonen 2015"
    judges = "language models"
    incompatible_abilities: ClassVar[Mapping[Ability, str]] = {Ability.COUNTED: "tables of counts and no vectors"}

    file: str | None = None
    """Tab-separated lines of word, word, score; None: the columns text_a, text_b and label of the test table."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [RecordedFigure(FIGURE, cls.name, spearman, bounds=(-1.0, 1.0))]

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (Path(self.file),) if self.file is not None else ()

    def unfit(self, family: str | None, language: str | None) -> str | None:
        if self.file is None and family not in (None, GRADED):
            return (
                f"the examples of {family} are no graded pairs: give a file of word, word, score, or a dataset whose "
                f"task is {GRADED}"
            )
        return None

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        pairs = self.pairs(context)
        if len(pairs) < LEAST_PAIRS or len({score for *_, score in pairs}) == 1:
            raise DataError(
                f"{self.file or 'the test table'}: {len(pairs)} pairs cannot be ranked; give at least {LEAST_PAIRS}, "
                "with different scores"
            )
        stages, headline = [], {}
        for stage, models in context.language_models.items():
            samples = []
            for model in models:
                table = EmbeddingTable(model.folder)
                vectors = [text_vectors(table, texts) for texts in ([a for a, *_ in pairs], [b for _, b, _ in pairs])]
                cosines = (vectors[0] * vectors[1]).sum(1)
                samples.append(np.stack([cosines, np.asarray([score for *_, score in pairs])], axis=1))
                context.keep(self.name, model, samples[-1])
            known = np.all([np.abs(side).sum(1) > 0 for side in vectors], axis=0)
            correlation = interval(spearman, samples, context.seed, least=-1.0)
            stages.append(
                {
                    "stage": stage,
                    "seeds": [model.seed for model in models],
                    "coverage": round(float(known.mean()), 4),
                    "spearman": {"mean": correlation.mean, "low": correlation.low, "high": correlation.high},
                }
            )
            headline[f"{FIGURE}/{stage}"] = correlation.mean
        return {"pairs": len(pairs), "stages": stages, "headline": headline}

    def pairs(self, context: EvaluationContext) -> list[tuple[str, str, float]]:
        """The judgements: word or text, word or text, score."""
        if self.file is not None:
            return read_similarity(Path(self.file))
        return [(row["text_a"], row["text_b"], float(row["label"])) for row in context.rows]


def text_vectors(table: EmbeddingTable, texts: Sequence[str]) -> NDArray[np.float32]:
    """float32 [N, H]: mean of the unit vectors of each text's words, of length one; 0 for a text without known
    words."""
    result = np.zeros((len(texts), table.unit.shape[1]), dtype=np.float32)
    for index, text in enumerate(texts):
        words = table.words(text)
        if words:
            mean = table.unit[words].mean(0)
            result[index] = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return result


def spearman(rows: NDArray[np.float64]) -> float:
    """Spearman's correlation of the two columns of `rows` [n, 2]; 0 where one of them is constant."""
    from scipy.stats import rankdata

    ranks = rankdata(rows, axis=0)
    ranks -= ranks.mean(0)
    lengths = np.sqrt((ranks**2).sum(0))
    return float(ranks[:, 0] @ ranks[:, 1] / lengths.prod()) if lengths.all() else 0.0
