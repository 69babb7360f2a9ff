"""Comparison of a ladder of stages, each adding one step to the one before: every step, and the last stage with the
first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipelines.judging.certainty.resampling import RESAMPLES
from pipelines.judging.certainty.significance import holm_corrected, mcnemar, randomisation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.statistics import Difference
    from pipelines.judging.evaluations.context import EvaluationContext

Compare = Callable[[str, str], Mapping[str, "Difference"]]
"""Two stages → by metric, the difference of the second minus the first."""


def compare_ladder(ladder: Sequence[str], metric: str, compare: Compare, context: EvaluationContext) -> dict[str, Any]:
    """Records of all steps (`ladder`), and of the last stage against the first (`whole_ladder`; None for a single
    step).

    Verdicts use `metric`, with Holm's correction over all steps. If both stages have the same number of seeds, each
    record also has p-values that compare these models only: approximate randomisation over examples, and for accuracy
    McNemar's test of the first seeds.
    """
    pairs = list(pairwise(ladder))
    whole = [(ladder[0], ladder[-1])] if len(pairs) > 1 else []

    def records(family: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        compared = [compare(before, after) for before, after in family]
        corrected = holm_corrected([differences[metric] for differences in compared])
        return [
            {
                "from": before,
                "to": after,
                **{name: difference.record() for name, difference in differences.items()},
                "p_holm": one["p"],
                "verdict": one["verdict"],
                "these_models": _these_models(context, metric, before, after),
            }
            for (before, after), differences, one in zip(family, compared, corrected, strict=True)
        ]

    return {"ladder": records(pairs), "whole_ladder": records(whole)[0] if whole else None}


def _these_models(context: EvaluationContext, metric: str, before: str, after: str) -> dict[str, float]:
    """p-values conditional on these models: they do not generalise to other seeds."""
    first, second = ([context.statistics(model) for model in context.task_models[stage]] for stage in (before, after))
    if len(first) != len(second):
        return {}
    score = context.family.scorer(metric)
    p_values = {"randomisation": randomisation(score, first, second, context.seed, RESAMPLES)}
    if metric == "accuracy":
        gold = context.gold
        correct = [_correct(context.answers(context.task_models[stage][0]), gold) for stage in (before, after)]
        p_values["mcnemar"] = mcnemar(*correct)
    return p_values


def _correct(answers: Sequence[Any], gold: Sequence[Any]) -> NDArray[np.bool_]:
    import numpy as np

    return np.asarray([answer == expected for answer, expected in zip(answers, gold, strict=True)])
