"""The search over a claim's grid: what the validation of every point was, and what it chose for each side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pipelines.errors import DataError
from pipelines.lineage.store import Store
from pipelines.recipe.claims import Measurement
from pipelines.recipe.plan import Plan
from pipelines.recipe.tuning import Point, point_name, points
from tasks.datasets.claim_requests import ClaimRequest

PREFIX = "validation/"


@dataclass(frozen=True)
class ScoredPoint:
    """A point of the grid with its validation score under the first seed."""

    settings: Point
    validation: float
    fingerprint: str


@dataclass(frozen=True)
class Tuning:
    """A finished search on one dataset."""

    grid: Mapping[str, Sequence[Any]]
    metric: str
    """Metric of validation that chose."""
    stages: Mapping[str, Sequence[ScoredPoint]]
    """Compared stage → all points, in the order of the grid."""

    @classmethod
    def of(cls, requested: ClaimRequest, part: Measurement, plan: Plan, store: Store) -> Self:
        """The search of a part whose `plan` over the grid has been computed.

        The claim's figure chooses where it is a metric of validation, else the first metric of the task. Raises
        DataError where a point is not in the store, or has no such score.
        """
        claim = requested.claim
        steps = {step.name: step for step in plan.steps}
        grid = points(claim.tune)
        names = [name for stage in part.stages for name in (point_name(stage, number) for number in range(len(grid)))]
        results = {name: _validation(name, steps[name].fingerprint, store) for name in names}
        family = next(iter(steps[names[0]].families.values()), steps[names[0]].family)
        wished = (claim.figure, family.metrics[0])
        metric = next((one for one in wished if one and all(one in known for known in results.values())), None)
        if metric is None:
            raise DataError(
                f"the models of the grid have no common validation score: {', '.join(filter(None, wished))}"
            )
        stages = {
            stage: [
                ScoredPoint(point, results[name][metric], steps[name].fingerprint)
                for point, name in ((point, point_name(stage, number)) for number, point in enumerate(grid))
            ]
            for stage in part.stages
        }
        return cls({key: list(values) for key, values in claim.tune.items()}, metric, stages)

    @property
    def chosen(self) -> dict[str, Point]:
        """Compared stage → its best point, the first of equals."""
        return {stage: max(scored, key=lambda one: one.validation).settings for stage, scored in self.stages.items()}

    def record(self, dataset: str) -> dict[str, Any]:
        """JSON values."""
        return {
            "dataset": dataset,
            "grid": self.grid,
            "by": self.metric,
            "points": {
                stage: [
                    {"settings": one.settings, "validation": one.validation, "fingerprint": one.fingerprint}
                    for one in scored
                ]
                for stage, scored in self.stages.items()
            },
            "chosen": self.chosen,
        }


def tuning_texts(record: Mapping[str, Any]) -> Iterator[str]:
    """What a record says of the search on each dataset, and where the best point is at the end of a grid."""
    for tuning in record.get("tuning", ()):
        values = {
            key: list(dict.fromkeys(value)) for key, value in zip(_keys(tuning), tuning["grid"].values(), strict=True)
        }
        chosen = []
        for stage, settings in tuning["chosen"].items():
            at_end = [
                key
                for key, value in settings.items()
                if len(values[key]) > 2 and value in (values[key][0], values[key][-1])
            ]
            shown = ", ".join(
                f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}" for key, value in settings.items()
            )
            chosen.append(f"{stage} {shown}" + (" (at the end of the grid)" if at_end else ""))
        number = len(next(iter(tuning["points"].values())))
        yield f"tuned alike by validation {tuning['by']} over {number} points: {'; '.join(chosen)}"


def _keys(tuning: Mapping[str, Any]) -> list[str]:
    """Key paths of the grid, as they are in its points."""
    return list(next(iter(tuning["chosen"].values())))


def _validation(name: str, fingerprint: str, store: Store) -> dict[str, float]:
    artifact = store.get(fingerprint)
    if artifact is None:
        raise DataError(f"{name} of the grid is not in the store; run the same command again")
    metrics = artifact.provenance.result.get("metrics", {})
    return {key.removeprefix(PREFIX): float(value) for key, value in metrics.items() if key.startswith(PREFIX)}
