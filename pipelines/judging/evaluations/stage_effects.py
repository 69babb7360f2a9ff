"""Which stage earned its keep: every subset of the stages before fine-tuning, as a factorial experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, model_validator

from pipelines.errors import RecipeError
from pipelines.judging.certainty.resampling import RESAMPLES, contributions, interval, resampled_means
from pipelines.judging.certainty.significance import PAYS, holm_corrected, required_sample_sizes
from pipelines.judging.certainty.statistics import Difference
from pipelines.judging.certainty.variance_components import ContrastVariance, contrast_variance, rescaled_interval
from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.stage import EvaluationContext


class LatticePath(BaseModel):
    """One way through the stages: which of them ran before the fine-tuning."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    """The fine-tuned stage at its end."""
    through: tuple[str, ...]
    """The factors that ran, in their order; none for fine-tuning from random weights."""
    labelled: PositiveInt | None = None
    """How many labelled examples it was fine-tuned on; None for all."""


class StageEffectsEvaluation(Evaluation, name="stage_effects"):
    """Each stage's main effect, all interactions, and what each adds to each path, over a full factorial of stages.

    With k factors there are 2^k paths; the effect of a set of factors is the sum over paths of the score times the product of
    signs (+1 where a factor ran), over 2^(k-1) (Box, Hunter & Hunter 2005, §5). All paths answer the same items; intervals are
    over seeds and items. A stage pays when its main effect stays significant after Holm's correction over all main effects;
    where one cannot tell, the number of seeds or items that would settle it is given.
    """

    paper = "doi:10.1214/07-AOAS122"

    factors: tuple[str, ...] = Field(min_length=1, max_length=5)
    """The stages whose worth is asked, in the order in which they run."""
    paths: tuple[LatticePath, ...] = Field(min_length=2)
    """All ways through them: every subset, at every number of labelled examples."""
    metric: str | None = None
    """What the effects are about; None for the family's first metric."""

    @model_validator(mode="after")
    def _full(self) -> Self:
        subsets = {kept for size in range(len(self.factors) + 1) for kept in combinations(self.factors, size)}
        for labelled in self.sizes:
            found = [path.through for path in self.paths if path.labelled == labelled]
            for missing in sorted(subsets - set(found)):
                raise ValueError(
                    f"no path goes through {' and '.join(missing) or 'no stage at all'}: effects need all 2^k"
                )
            if len(found) != len(subsets):
                raise ValueError("a path is given twice, or goes through a stage that is no factor")
        return self

    @property
    def sizes(self) -> list[int | None]:
        """Numbers of labelled examples, all of them (None) last."""
        return sorted({path.labelled for path in self.paths}, key=lambda size: (size is None, size or 0))

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(path.stage for path in self.paths)

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        family = evaluated.family
        metric = self.chosen_metric(self.metric, family)
        for path in self.paths:
            if len(evaluated.answering[path.stage]) < 2:
                raise RecipeError(
                    f"evaluation stage_effects: {path.stage} has one seed, and effects are judged by how seeds vary; "
                    "give at least two (--seeds)"
                )
        by_size = [self._of_size(evaluated, metric, size) for size in self.sizes]
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
            "examples": len(evaluated.rows),
            "resamples": RESAMPLES,
            **whole,
            "sizes": by_size,
            "headline": {
                f"effect/{one['of'][0]}": one["difference"] for one in whole["effects"] if len(one["of"]) == 1
            },
        }

    def _of_size(self, evaluated: EvaluationContext, metric: str, labelled: int | None) -> dict[str, Any]:
        """Scores of all paths with so many labels, and every effect."""
        score = evaluated.family.scorer(metric)
        paths = [path for path in self.paths if path.labelled == labelled]
        answers = [[evaluated.statistics(model) for model in evaluated.answering[path.stage]] for path in paths]
        parts = [contributions(score, models) for models in answers]
        means = resampled_means([(score, models) for models in answers], evaluated.seed, RESAMPLES)
        observed = [sum(map(score, models)) / len(models) for models in answers]
        contrasts = _Contrasts(observed, means, parts)
        asked = [
            _Asked({"of": list(of)}, contrasts.measured([self._weight(path, of) for path in paths]))
            for size in range(1, len(self.factors) + 1)
            for of in combinations(self.factors, size)
        ]
        steps = [
            _Asked(
                {"from": before.stage, "to": after.stage, "adds": added},
                contrasts.measured([float(path is after) - float(path is before) for path in paths]),
            )
            for before in paths
            for after in paths
            for added in self.factors
            if added not in before.through and set(after.through) == {*before.through, added}
        ]
        stages, items = len(self.factors), len(evaluated.rows)
        return {
            "labelled": labelled,
            "paths": [
                {
                    "stage": path.stage,
                    "through": list(path.through),
                    "seeds": [model.seed for model in evaluated.answering[path.stage]],
                    "score": interval(score, models, evaluated.seed).record(),
                }
                for path, models in zip(paths, answers, strict=True)
            ],
            # every question of one kind is a family of its own: stages, interactions, single steps
            "effects": _told(asked[:stages], items) + _told(asked[stages:], items),
            "steps": _told(steps, items),
        }

    def _weight(self, path: LatticePath, of: Sequence[str]) -> float:
        """Of a path in the contrast that is the effect of the factors `of`."""
        sign = 1.0
        for factor in of:
            sign *= 1.0 if factor in path.through else -1.0
        return float(sign / 2 ** (len(self.factors) - 1))


@dataclass(frozen=True)
class _Contrast:
    """A weighted sum of the paths' scores, and how far it may be off."""

    difference: Difference
    variance: ContrastVariance
    seeds: int
    """Of the side that has the fewest."""


@dataclass(frozen=True)
class _Asked:
    """A question about paths: which effect, or which step."""

    what: Mapping[str, Any]
    answer: _Contrast


def _told(family: Sequence[_Asked], items: int) -> list[dict[str, Any]]:
    """The records of one family of questions, judged together."""
    # exact where paths have few seeds, whose tails are heavier than those that an interval alone implies
    values = [one.answer.variance.p_value(one.answer.difference.difference) for one in family]
    judgements = holm_corrected([one.answer.difference for one in family], values)
    undecided = sum(one["verdict"] == "cannot tell" for one in judgements)
    records = []
    for one, p, judgement in zip(family, values, judgements, strict=True):
        answer, apart = one.answer, one.answer.difference
        settled = None
        if judgement["verdict"] == "cannot tell":
            settled = asdict(required_sample_sizes(apart.difference, answer.variance, answer.seeds, items, undecided))
        records.append(
            {
                **one.what,
                "difference": apart.difference,
                "low": apart.low,
                "high": apart.high,
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

    def measured(self, weights: Sequence[float]) -> _Contrast:
        used = [(weight, number) for number, weight in enumerate(weights) if weight]
        difference = sum(weight * self.observed[number] for weight, number in used)
        found = contrast_variance([(weight, self.parts[number]) for weight, number in used])
        drawn = sum(weight * self.means[number] for weight, number in used)
        low, high = rescaled_interval(difference, drawn, found, least=-2.0, most=2.0)  # type: ignore[arg-type]
        seeds = min(len(self.parts[number]) for _, number in used)
        return _Contrast(Difference(difference, low, high), found, seeds)
