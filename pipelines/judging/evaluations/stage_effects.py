"""Contribution of each stage before fine-tuning: a full factorial experiment over all subsets of these stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.errors import RecipeError
from pipelines.judging.certainty.resampling import RESAMPLES, contributions, interval, resampled_means
from pipelines.judging.certainty.significance import PAYS, holm_corrected, required_sample_sizes
from pipelines.judging.certainty.statistics import Difference
from pipelines.judging.certainty.variance_components import ContrastVariance, contrast_variance, rescaled_interval
from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext


class LatticePath(BaseModel):
    """One path through the stages: which of them ran before the fine-tuning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    """The fine-tuned stage at its end."""
    through: tuple[str, ...]
    """The factors that ran, in order; empty for fine-tuning from random weights."""
    labelled: int | None = Field(None, ge=1, le=100_000_000)
    """Number of labelled examples of the fine-tuning; None for all."""


class StageEffectsEvaluation(Evaluation, name="stage_effects"):
    """Each stage's main effect, all interactions, and the gain of each single step, over a full factorial of stages.

    With k factors there are 2^k paths; the effect of a set of factors is the sum over paths of the score times the
    product of signs (+1 if a factor ran, else -1), over 2^(k-1) (Box, Hunter & Hunter 2005, §5). All paths answer the
    same items; intervals are over seeds and items. A stage pays if its main effect is significant after Holm's
    correction over all main effects; if undecided, the record gives the number of seeds or items that would decide it.
    """

    paper = "doi:10.1214/07-AOAS122"

    factors: tuple[str, ...] = Field(min_length=1, max_length=5)
    """The stages whose effects are estimated, in the order in which they run."""
    paths: tuple[LatticePath, ...] = Field(min_length=2)
    """All paths: every subset of the factors, at every number of labelled examples."""
    metric: str | None = None
    """Metric of the effects; None for the family's first."""

    @model_validator(mode="after")
    def _full(self) -> Self:
        subsets = {subset for size in range(len(self.factors) + 1) for subset in combinations(self.factors, size)}
        for labelled in self.sizes:
            present = [path.through for path in self.paths if path.labelled == labelled]
            for missing in sorted(subsets - set(present)):
                raise ValueError(
                    f"no path goes through {' and '.join(missing) or 'no stage at all'}: effects need all 2^k"
                )
            if len(present) != len(subsets):
                raise ValueError("a path is given twice, or goes through a stage that is no factor")
        return self

    @property
    def sizes(self) -> list[int | None]:
        """Numbers of labelled examples, all of them (None) last."""
        return sorted({path.labelled for path in self.paths}, key=lambda size: (size is None, size or 0))

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(path.stage for path in self.paths)

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        family = context.family
        metric = self.chosen_metric(self.metric, family)
        for path in self.paths:
            if len(context.task_models[path.stage]) < 2:
                raise RecipeError(
                    f"evaluation stage_effects: {path.stage} has one seed, and effects are judged by the variance "
                    "between seeds; give at least two (--seeds)"
                )
        by_size = [self._of_size(context, metric, size) for size in self.sizes]
        whole = by_size[-1]
        return {
            "metric": metric,
            "metrics": [metric],
            "stages": [
                {"stage": path["stage"], "seeds": path["seeds"], metric: path["score"]}
                for one in by_size
                for path in one["paths"]
            ],
            "factors": list(self.factors),
            "examples": len(context.rows),
            "resamples": RESAMPLES,
            **whole,
            "sizes": by_size,
            "headline": {
                f"effect/{one['of'][0]}": one["difference"] for one in whole["effects"] if len(one["of"]) == 1
            },
        }

    def _of_size(self, context: EvaluationContext, metric: str, labelled: int | None) -> dict[str, Any]:
        """Scores of all paths with `labelled` examples, and every effect."""
        score = context.family.scorer(metric)
        paths = [path for path in self.paths if path.labelled == labelled]
        answers = [[context.statistics(model) for model in context.task_models[path.stage]] for path in paths]
        parts = [contributions(score, models) for models in answers]
        means = resampled_means([(score, models) for models in answers], context.seed, RESAMPLES)
        observed = [sum(map(score, models)) / len(models) for models in answers]
        contrasts = _Contrasts(observed, means, parts)
        effects = [
            _Comparison({"of": list(of)}, contrasts.contrast([self._weight(path, of) for path in paths]))
            for size in range(1, len(self.factors) + 1)
            for of in combinations(self.factors, size)
        ]
        steps = [
            _Comparison(
                {"from": before.stage, "to": after.stage, "adds": added},
                contrasts.contrast([float(path is after) - float(path is before) for path in paths]),
            )
            for before in paths
            for after in paths
            for added in self.factors
            if added not in before.through and set(after.through) == {*before.through, added}
        ]
        stages, items = len(self.factors), len(context.rows)
        return {
            "labelled": labelled,
            "paths": [
                {
                    "stage": path.stage,
                    "through": list(path.through),
                    "seeds": [model.seed for model in context.task_models[path.stage]],
                    "score": interval(score, models, context.seed).record(),
                }
                for path, models in zip(paths, answers, strict=True)
            ],
            # Holm's correction is per family: main effects, interactions, single steps
            "effects": _records(effects[:stages], items) + _records(effects[stages:], items),
            "steps": _records(steps, items),
        }

    def _weight(self, path: LatticePath, of: Sequence[str]) -> float:
        """Weight of a path in the contrast that is the effect of the factors `of`."""
        sign = 1.0
        for factor in of:
            sign *= 1.0 if factor in path.through else -1.0
        return float(sign / 2 ** (len(self.factors) - 1))


@dataclass(frozen=True)
class _Contrast:
    """A weighted sum of the paths' scores, with its variance."""

    difference: Difference
    variance: ContrastVariance
    seeds: int
    """Number of seeds of the path that has the fewest."""


@dataclass(frozen=True)
class _Comparison:
    """An effect or a step, with its contrast."""

    keys: Mapping[str, Any]
    contrast: _Contrast


def _records(family: Sequence[_Comparison], items: int) -> list[dict[str, Any]]:
    """Records of one family of comparisons, with Holm's correction."""
    # exact p-values: with few seeds per path, tails are heavier than an interval alone implies
    values = [one.contrast.variance.p_value(one.contrast.difference.difference) for one in family]
    judgements = holm_corrected([one.contrast.difference for one in family], values)
    undecided = sum(one["verdict"] == "cannot tell" for one in judgements)
    records = []
    for one, p, judgement in zip(family, values, judgements, strict=True):
        contrast, difference = one.contrast, one.contrast.difference
        settled = None
        if judgement["verdict"] == "cannot tell":
            settled = asdict(
                required_sample_sizes(difference.difference, contrast.variance, contrast.seeds, items, undecided)
            )
        records.append(
            {
                **one.keys,
                "difference": difference.difference,
                "low": difference.low,
                "high": difference.high,
                "p": p,
                "settled_by": settled,
                "p_holm": judgement["p"],
                "verdict": PAYS[judgement["verdict"]],
            }
        )
    return records


class _Contrasts:
    """Contrasts of the paths of one lattice."""

    def __init__(
        self, observed: Sequence[float], means: Sequence[NDArray[np.float64]], parts: Sequence[NDArray[np.float64]]
    ) -> None:
        self.observed, self.means, self.parts = observed, means, parts

    def contrast(self, weights: Sequence[float]) -> _Contrast:
        used = [(weight, index) for index, weight in enumerate(weights) if weight]
        difference = sum(weight * self.observed[index] for weight, index in used)
        variance = contrast_variance([(weight, self.parts[index]) for weight, index in used])
        drawn = sum(weight * self.means[index] for weight, index in used)
        low, high = rescaled_interval(difference, drawn, variance, least=-2.0, most=2.0)  # type: ignore[arg-type]
        seeds = min(len(self.parts[index]) for _, index in used)
        return _Contrast(Difference(difference, low, high), variance, seeds)
