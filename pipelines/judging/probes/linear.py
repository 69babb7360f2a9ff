"""Linear probes of every layer, with control tasks that only memorisation of word types could solve."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from pipelines.errors import DataError
from pipelines.judging.probes import LAYERS, ExampleProbe, Observation
from pipelines.judging.probes.examples import flat, labels_of, types_of
from pipelines.judging.probes.regression import fit_softmax_regression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.probes.model import ProbedModel


class LinearProbe(ExampleProbe, name="linear"):
    """Accuracy of a linear classifier of words or texts on each layer, and its selectivity against randomly drawn
    labels.

    The control task gives every word type a label drawn from the distribution of the real ones (Hewitt & Liang 2019,
    §2); for a text, its first word is the type. A probe that solves it memorises; selectivity is accuracy on the task
    minus accuracy on the control. Softmax regression with an L2 penalty on features of unit variance, by L-BFGS.
    """

    paper = "arXiv:1909.03368"
    reads = frozenset({"tagging", "dependency_parsing", "text_classification"})
    metrics = ("accuracy", "selectivity", "control")

    penalty: float = Field(1.0, gt=0)
    """Weight of half the squared norm of the coefficients, added to the summed loss."""

    def observe(self, model: ProbedModel) -> Observation:
        train, test = (model.word_states(table, self.examples) for table in self.tables)
        rows = [model.examples.rows(table)[: self.examples] for table in self.tables]
        known, expected = (flat([labels_of(model.family, row) for row in part]) for part in rows)
        types = [flat([types_of(model.family, row) for row in part]) for part in rows]
        drawn = control_labels([*types[0], *types[1]], Counter(known), model.seed)
        tasks = [(known, expected), ([drawn[one] for one in types[0]], [drawn[one] for one in types[1]])]
        if len(set(np.asarray(known)[train.covered])) < 2:
            raise DataError("probe linear: the training examples have a single label; the probe needs at least two")
        sentences = len(test.begins) - 1
        statistics = np.zeros((len(test.layers), sentences, 3))
        owners = test.owners[test.covered]
        statistics[..., 2] = np.bincount(owners, minlength=sentences)
        for layer, (states, others) in enumerate(zip(train.layers, test.layers, strict=True)):
            for column, (right, targets) in enumerate(tasks):
                predicted = fit_softmax_regression(
                    states[train.covered], np.asarray(right)[train.covered], self.penalty
                ).predict(others[test.covered])
                hits = (predicted == np.asarray(targets)[test.covered]).astype(np.float64)
                statistics[layer, :, column] = np.bincount(owners, hits, sentences)
        counts = Counter(np.asarray(expected)[test.covered].tolist())
        notes = {
            "labels": len(set(known)),
            "majority": counts[Counter(known).most_common(1)[0][0]] / max(1, sum(counts.values())),
            "words": int(test.covered.sum()),
            "not_covered": int((~test.covered).sum()),
        }
        return Observation({LAYERS: statistics}, notes=notes)

    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        right, control, words = statistics.sum(axis=0)
        if words == 0:
            return 0.0
        return float({"accuracy": right, "control": control, "selectivity": right - control}[metric] / words)


def control_labels(types: Sequence[str], labels: Mapping[str, int], seed: int) -> dict[str, str]:
    """The control label of every word type: drawn by a hash of type and seed, in the proportions of `labels`."""
    names = sorted(labels)
    ends = np.cumsum([labels[name] for name in names]) / sum(labels.values())
    drawn = {}
    for one in set(types):
        lot = int.from_bytes(hashlib.blake2b(f"{seed}\t{one}".encode(), digest_size=8).digest(), "big") / 2**64
        drawn[one] = names[min(int(np.searchsorted(ends, lot, side="right")), len(names) - 1)]
    return drawn
