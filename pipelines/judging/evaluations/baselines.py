"""Baselines that need no network: two constant answers, and a linear model over TF-IDF features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.judging.certainty import resampling
from pipelines.judging.certainty.statistics import METRICS, Metric, interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.samples import CONSTANT, LEARNED

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.statistics import Difference
    from pipelines.judging.evaluations.context import EvaluationContext

# languages written without spaces between words have no word n-grams to count
UNSPACED = ("zh", "ja", "th")


TEXTS = 50_000
"""Training texts that the linear model is fitted on, of more a sample: its features would not fit into memory."""
COEFFICIENTS = 1_000_000
"""Features times classes of the linear model; L-BFGS keeps 25 numbers for each."""


class BaselinesEvaluation(Evaluation, name="baselines"):
    """The most frequent class of the training table, that of the test table, and TF-IDF with logistic regression.

    The first answer is what the labels teach without any text; the second is the best that one answer to everything can
    score, which differs where the training table is balanced and the test table is not. TF-IDF learns from the same
    labels. It counts words and pairs of words, or one to three characters where words are not separated by spaces. The
    regression's C is the one with the best validation accuracy, the smallest of equals. Of more than 50,000 training
    texts a sample is read, and of more features than 1 million over the number of classes the most frequent; the report
    says so.
    """

    paper = "Wang and Manning 2012, ACL P12-2018"
    independent_of_models = True
    reads = frozenset({"text_classification", "pair_classification"})
    baseline_sample = "answers"

    strengths: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    """Inverse regularisation strengths C to choose from."""
    against: str | None = None
    """A stage to compare with each baseline on the same texts."""
    labelled: int | None = Field(None, gt=0, exclude_if=lambda value: value is None)
    """Training examples that the linear model is fitted on, drawn by the seed, at least one of each label: as many as
    the judged stages read; None: all."""

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.against,) if self.against else ()

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        truth = context.truth  # refuses test labels that no training example has
        linear, chosen = self._tfidf(context)
        predictions = {
            "majority": _constant(context, context.train_labels),
            "most_frequent": _constant(context, context.test.labels),
            "tfidf": linear,
        }
        baselines: list[dict[str, Any]] = []
        headline = {}
        for name, predicted in predictions.items():
            learned = name == "tfidf"
            record: dict[str, Any] = {"name": name, "settings": chosen if learned else {}}
            answers = [context.labels[choice] for choice in predicted[0]]
            statistics = context.family.statistics(context.gold, answers, context.labels)
            context.keep_baseline(self.baseline_sample, f"{LEARNED if learned else CONSTANT}{name}", statistics)
            for metric in METRICS:
                estimate = interval(metric, truth, predicted, len(context.labels), context.seed)
                record[metric] = estimate.record()
                headline[f"test/{metric}/{name}"] = estimate.mean
                if self.against:
                    compared = self._difference(context, self.against, metric, predicted, statistics)
                    record[f"{metric}_of_{self.against}_minus_this"] = compared.record()
            baselines.append(record)
        return {"against": self.against, "baselines": baselines, "headline": headline}

    @staticmethod
    def _difference(
        context: EvaluationContext,
        stage: str,
        metric: Metric,
        predicted: NDArray[np.int64],
        statistics: NDArray[np.float64],
    ) -> Difference:
        """`metric` of a stage minus that of a baseline with the `predicted` classes [1, N], or `statistics` [N, K]."""
        if context.family.is_single_text:
            own = context.stage_predictions(stage)
            return paired_difference(metric, context.truth, predicted, own, len(context.labels), context.seed)
        models = [context.statistics(subject) for subject in context.task_models[stage]]
        return resampling.paired_difference(context.family.scorer(metric), [statistics], models, context.seed)

    def _tfidf(self, context: EvaluationContext) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """Predictions [1, N] of the best linear model, and its settings."""
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        unspaced = context.language in UNSPACED
        analyzer, longest = ("char", 3) if unspaced else ("word", 2)
        settings: dict[str, Any] = {"analyzer": analyzer, "ngram_range": (1, longest), "sublinear_tf": True}
        if not unspaced:
            # the default pattern drops words of one letter, among them many names in documentation
            settings["token_pattern"] = r"(?u)\b\w+\b"
        # the most frequent features, where the coefficients of all would not fit into memory
        vectorizer = TfidfVectorizer(**settings, max_features=max(1, COEFFICIENTS // len(context.labels)))
        texts, labels = _drawn(context, min(TEXTS, self.labelled or TEXTS))
        train = vectorizer.fit_transform(texts)
        validation = vectorizer.transform(context.validation.texts)
        fitted = [
            LogisticRegression(C=strength, max_iter=5000).fit(train, labels) for strength in sorted(self.strengths)
        ]
        scores = [float(model.score(validation, context.validation.labels)) for model in fitted]
        best = scores.index(max(scores))
        predicted = fitted[best].predict(vectorizer.transform(context.test.texts))
        chosen = {
            "C": sorted(self.strengths)[best],
            "analyzer": analyzer,
            "ngrams": [1, longest],
            "features": len(vectorizer.vocabulary_),
            "validation_accuracy": scores[best],
        }
        if len(texts) < len(context.train_labels):
            chosen["trained_on"] = len(texts)
        return _indices(context, [str(label) for label in predicted]), chosen


def _drawn(context: EvaluationContext, most: int) -> tuple[list[str], list[str]]:
    """The training texts and labels, or `most` of them, drawn by the seed, with one of each label."""
    table, known = context.examples("train"), context.train_labels
    if len(table) <= most:
        return [row["text"] for row in table], known
    import numpy as np

    order = np.random.default_rng([context.seed, 3]).permutation(len(table)).tolist()
    first = {known[index]: index for index in reversed(order)}
    ahead = set(first.values())
    chosen = sorted([*ahead, *(index for index in order if index not in ahead)][: max(most, len(ahead))])
    return [row["text"] for row in table.take(chosen)], [known[index] for index in chosen]


def _constant(context: EvaluationContext, labels: Sequence[str]) -> NDArray[np.int64]:
    """The most frequent of `labels`, the first of equals, as the answer to every test example."""
    counts = Counter(labels)
    most = min(counts, key=lambda label: (-counts[label], label))
    return _indices(context, [most] * len(context.test))


def _indices(context: EvaluationContext, labels: list[str]) -> NDArray[np.int64]:
    import numpy as np

    index = {label: position for position, label in enumerate(context.labels)}
    return np.asarray([[index[label] for label in labels]], dtype=np.int64)
