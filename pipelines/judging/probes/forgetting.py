"""Forgetting of general text by each stage of a lineage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import DataError
from pipelines.judging.certainty.significance import holm_corrected
from pipelines.judging.figures import RecordedFigure
from pipelines.judging.probes import Observation, Probe, ProbedStage, statistic_sample
from pipelines.judging.probes.held_out_loss import losses, prediction_signal
from pipelines.judging.probes.regression import fit_softmax_regression
from pipelines.judging.probes.sentence_tasks import sentence_tasks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.judging.certainty.statistics import Difference
    from pipelines.judging.probes.model import ProbedModel

TABLE = "general_heldout"
"""The table of general text that nothing trained on."""
LOSS = "loss"


class ForgettingProbe(Probe, name="forgetting"):
    """Loss on held-out general text, and unsupervised probing tasks on text vectors, after every stage.

    A language model predicts the same tokens of the same texts at every stage: masked tokens, or next tokens. For every
    model, whatever its head, sentence length, word content and bigram shift of general sentences (Conneau et al. 2018)
    are predicted by softmax regression on the mean of its top hidden states. Each stage is compared with the one before
    and with the first; losses only if the same tokens were predicted, so not across tokenizers.
    """

    paper = "doi:10.18653/v1/P18-1198"
    tables: ClassVar[tuple[str, ...]] = (TABLE,)
    metrics = (LOSS,)

    documents: PositiveInt = 400
    """Maximum number of texts whose first row is predicted."""
    sentences: PositiveInt = 2000
    """Maximum number of sentences of the probing tasks."""
    rate: float = Field(0.15, gt=0, lt=1)
    """Share of a text's tokens that are masked."""

    def tiny(self) -> Self:
        return self.model_copy(update={"documents": min(self.documents, 40), "sentences": min(self.sentences, 200)})

    def observe(self, model: ProbedModel) -> Observation:
        every = model.examples.texts(TABLE)
        if not every:
            raise DataError(
                f"the table {TABLE} is empty: the dataset's general text is too small to hold some out; remove the "
                "probe forgetting, or give `general` more text"
            )
        statistics: dict[str, NDArray[np.float64]] = {}
        notes: dict[str, Any] = {"chances": {}, "targets": None}
        signal, notes["way"] = prediction_signal(model)
        if signal is not None:
            statistics[LOSS], notes["targets"] = losses(model, every[: self.documents], signal, self.rate, model.seed)
        for task in sentence_tasks(every, model.seed, self.sentences):
            vectors = model.read([[text] for text in task.texts], word_level=False)
            top, tested = vectors.layers[-1], np.asarray(task.tested)
            labels, known = np.asarray(task.labels), vectors.covered
            predicted = fit_softmax_regression(top[known & ~tested], labels[known & ~tested], 1.0).predict(top[tested])
            documents = np.asarray(task.documents)[tested]
            _, owners = np.unique(documents, return_inverse=True)
            right = np.bincount(owners, (predicted == labels[tested]).astype(np.float64))
            statistics[task.name] = np.stack([right, np.bincount(owners)], axis=1)
            notes["chances"][task.name] = task.chance
        return Observation(statistics, notes=notes)

    def score(self, metric: str, statistics: NDArray[np.float64]) -> float:
        total, count = statistics.sum(axis=0)
        return float(total / count) if count else 0.0

    def figures(self) -> Sequence[RecordedFigure]:
        """The loss per token. It is comparable between stages of one tokenizer and one way of predicting."""
        loss = RecordedFigure(
            f"{self.name}/{LOSS}", statistic_sample(self.name, LOSS), self.scorer(LOSS), True, "nats", bounds=(0.0, inf)
        )
        return (loss,)

    def record(self, stages: Sequence[ProbedStage], seed: int) -> dict[str, Any]:
        """`{"metrics", "boundaries": [{"stage", "seeds", "way", metric: estimate, "since_first": {metric:
        difference}}], "changes": [{"from", "to", metric: difference}], "chances", "documents", "tokens"}`.

        The loss is absent for a stage that predicts no tokens, a difference for two stages that predict different ones.
        """
        from pipelines.judging.certainty.resampling import RESAMPLES, interval

        tasks = list(stages[0].observations[0].notes["chances"])
        boundaries: list[dict[str, Any]] = []
        for stage in stages:
            entry: dict[str, Any] = {
                "stage": stage.name,
                "seeds": list(stage.seeds),
                "way": stage.observations[0].notes["way"],
            }
            for metric in (LOSS, *tasks):
                if metric in stage.observations[0].statistics:
                    models = [one.statistics[metric] for one in stage.observations]
                    entry[metric] = interval(self.scorer(metric), models, seed, reach=_reach(metric)).record()
            boundaries.append(entry)
        steps = list(pairwise(stages))
        neighbours = [self._differences(before, after, tasks, seed) for before, after in steps]
        since_first = [self._differences(stages[0], stage, tasks, seed) for stage in stages[2:]]
        corrected = _corrected([*neighbours, *since_first])
        changes = corrected[: len(neighbours)]
        for entry, differences in zip(boundaries[1:], [*changes[:1], *corrected[len(neighbours) :]], strict=True):
            entry["since_first"] = differences
        predicted = next(
            (stage.observations[0].statistics[LOSS] for stage in stages if LOSS in stage.observations[0].statistics),
            None,
        )
        return {
            "metrics": [LOSS, *tasks],
            "boundaries": boundaries,
            "changes": [
                {"from": before.name, "to": after.name, **differences}
                for (before, after), differences in zip(steps, changes, strict=True)
            ],
            "chances": dict(stages[0].observations[0].notes["chances"]),
            "documents": 0 if predicted is None else len(predicted),
            "tokens": 0 if predicted is None else int(predicted[:, 1].sum()),
            "resamples": RESAMPLES,
            "headline": {f"forgetting/loss/{one['stage']}": one[LOSS]["mean"] for one in boundaries if LOSS in one}
            | {f"forgetting/{task}/{one['stage']}": one[task]["mean"] for one in boundaries for task in tasks},
        }

    def _differences(
        self, before: ProbedStage, after: ProbedStage, tasks: Sequence[str], seed: int
    ) -> dict[str, Difference]:
        from pipelines.judging.certainty.resampling import paired_difference

        digests = {one.notes["targets"] for stage in (before, after) for one in stage.observations}
        comparable = [*([LOSS] if len(digests) == 1 and None not in digests else []), *tasks]
        differences: dict[str, Difference] = {}
        for metric in comparable:
            first, second = ([one.statistics[metric] for one in stage.observations] for stage in (before, after))
            differences[metric] = paired_difference(self.scorer(metric), first, second, seed, reach=_reach(metric))
        return differences


def _corrected(compared: Sequence[Mapping[str, Difference]]) -> list[dict[str, Any]]:
    """Records of all comparisons as one family, with Holm's correction."""
    keys = [(index, metric) for index, one in enumerate(compared) for metric in one]
    records: list[dict[str, Any]] = [{} for _ in compared]
    for (index, metric), record in zip(keys, holm_corrected([compared[n][metric] for n, metric in keys]), strict=True):
        # a lower loss is better
        verdict = {"better": "worse", "worse": "better"}.get(record["verdict"], record["verdict"])
        records[index][metric] = {**record, "verdict": verdict if metric == LOSS else record["verdict"]}
    return records


def _reach(metric: str) -> float:
    """The largest possible value of a metric."""
    return float("inf") if metric == LOSS else 1.0
