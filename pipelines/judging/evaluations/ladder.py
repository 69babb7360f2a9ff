"""Stages in an order in which each adds one thing to the one before: every step compared, and the last with the first."""

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
    from pipelines.judging.evaluations.stage import EvaluationContext

Compare = Callable[[str, str], Mapping[str, "Difference"]]
"""Two stages → by metric, what the second scores more than the first."""


def compare_ladder(
    ladder: Sequence[str], metric: str, compare: Compare, evaluated: EvaluationContext
) -> dict[str, Any]:
    """The records of all steps, `ladder`, and of the last stage against the first, `whole_ladder` (None for a single step).

    Verdicts are about `metric`: those of the steps stand after Holm's correction over all of them. Beside them stands, where
    both stages have as many seeds, whether these very models differ: approximate randomisation over examples, and for
    accuracy McNemar's test of their first seeds.
    """
    pairs = list(pairwise(ladder))
    whole = [(ladder[0], ladder[-1])] if len(pairs) > 1 else []

    def records(family: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
        found = [compare(before, after) for before, after in family]
        told = holm_corrected([differences[metric] for differences in found])
        return [
            {
                "from": before,
                "to": after,
                **{name: difference.record() for name, difference in differences.items()},
                "p_holm": one["p"],
                "verdict": one["verdict"],
                "these_models": _these_models(evaluated, metric, before, after),
            }
            for (before, after), differences, one in zip(family, found, told, strict=True)
        ]

    return {"ladder": records(pairs), "whole_ladder": records(whole)[0] if whole else None}


def _these_models(evaluated: EvaluationContext, metric: str, before: str, after: str) -> dict[str, float]:
    """p-values that say nothing of other seeds."""
    first, second = ([evaluated.statistics(model) for model in evaluated.answering[stage]] for stage in (before, after))
    if len(first) != len(second):
        return {}
    score = evaluated.family.scorer(metric)
    found = {"randomisation": randomisation(score, first, second, evaluated.seed, RESAMPLES)}
    if metric == "accuracy":
        gold = evaluated.gold
        right = [_right(evaluated.answers(evaluated.answering[stage][0]), gold) for stage in (before, after)]
        found["mcnemar"] = mcnemar(*right)
    return found


def _right(answers: Sequence[Any], gold: Sequence[Any]) -> NDArray[np.bool_]:
    import numpy as np

    return np.asarray([answer == wanted for answer, wanted in zip(answers, gold, strict=True)])
