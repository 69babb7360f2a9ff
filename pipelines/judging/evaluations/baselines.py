"""Baselines that need no network: the majority class, and a linear model over TF-IDF features."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pipelines.judging.certainty.statistics import METRICS, interval, paired_difference
from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext

# languages written without spaces between words have no word n-grams to count
UNSPACED = ("zh", "ja", "th")


TEXTS = 50_000
"""Training texts that the linear model is fitted on, of more a sample: its features would not fit into memory."""
COEFFICIENTS = 1_000_000
"""Features times classes of the linear model; L-BFGS keeps 25 numbers for each."""


class BaselinesEvaluation(Evaluation, name="baselines"):
    """Majority class, and TF-IDF with logistic regression, trained on the same labels and scored on the same test
    table.

    TF-IDF counts words and pairs of words, or one to three characters where words are not separated by spaces. The
    regression's C is the one with the best validation accuracy, the smallest of equals. Of more than 50,000 training
    texts a sample is read, and of more features than 1 million over the number of classes the most frequent; the report
    says so.
    """

    paper = "Wang and Manning 2012, ACL P12-2018"
    independent_of_models = True
    reads = frozenset({"text_classification"})

    strengths: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    """Inverse regularisation strengths C to choose from."""
    against: str | None = None
    """A stage to compare with each baseline on the same texts."""

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.against,) if self.against else ()

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        linear, chosen = self._tfidf(context)
        predictions = {"majority": _majority(context), "tfidf": linear}
        baselines: list[dict[str, Any]] = []
        headline = {}
        for name, predicted in predictions.items():
            record: dict[str, Any] = {"name": name, "settings": chosen if name == "tfidf" else {}}
            for metric in METRICS:
                estimate = interval(metric, context.truth, predicted, len(context.labels), context.seed)
                record[metric] = estimate.record()
                headline[f"test/{metric}/{name}"] = estimate.mean
                if self.against:
                    record[f"{metric}_of_{self.against}_minus_this"] = paired_difference(
                        metric,
                        context.truth,
                        predicted,
                        context.stage_predictions(self.against),
                        len(context.labels),
                        context.seed,
                    ).record()
            baselines.append(record)
        return {"against": self.against, "baselines": baselines, "headline": headline}

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
        texts, labels = _drawn(context)
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


def _drawn(context: EvaluationContext) -> tuple[list[str], list[str]]:
    """The training texts and labels, or TEXTS of them, drawn by the seed, with one of each label."""
    table, known = context.examples("train"), context.train_labels
    if len(table) <= TEXTS:
        return [row["text"] for row in table], known
    import numpy as np

    order = np.random.default_rng([context.seed, 3]).permutation(len(table))
    first = {known[index]: int(index) for index in order[::-1]}
    chosen = sorted({*first.values(), *order[:TEXTS].tolist()})
    return [row["text"] for row in table.take(chosen)], [known[index] for index in chosen]


def _majority(context: EvaluationContext) -> NDArray[np.int64]:
    counts = Counter(context.train_labels)
    most = min(counts, key=lambda label: (-counts[label], label))
    return _indices(context, [most] * len(context.test))


def _indices(context: EvaluationContext, labels: list[str]) -> NDArray[np.int64]:
    import numpy as np

    index = {label: position for position, label in enumerate(context.labels)}
    return np.asarray([[index[label] for label in labels]], dtype=np.int64)
