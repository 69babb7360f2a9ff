"""Holm's correction over all claims of the page: of forty verdicts at 95 %, two would be certain by luck.

    contrast ──▶ p-value of what is required ──▶ of the whole claim ──▶ adjusted over the page

The p-value of a contrast is that of the normal distribution whose interval has the same end, so that it is below 5 %
exactly where the recorded interval excludes what the claim requires. Claims without an interval, and those whose
verdict was refused, are no test and are not in the family.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.judging.certainty.significance import holm
from pipelines.judging.certainty.variance_components import CONFIDENCE

CERTAIN = ("reproduced", "not reproduced")
UNSURE = "cannot tell at this scale"


def p_values(records: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """The p-value of each record's claim; None where there is no test."""
    return [_of_claim(record) for record in records]


def adjusted_p_values(records: Sequence[Mapping[str, Any]]) -> list[float | None]:
    """The same, adjusted over all of them together (Holm 1979)."""
    known = p_values(records)
    adjusted = iter(holm([one for one in known if one is not None]))
    return [None if one is None else next(adjusted) for one in known]


def adjusted_text(record: Mapping[str, Any], adjusted: float | None) -> str:
    """The adjusted p-value, and the verdict where it is no longer certain."""
    if adjusted is None:
        return ""
    value = f"{adjusted:.3f}" if adjusted >= 0.001 else "< 0.001"
    weaker = record["verdict"] in CERTAIN and adjusted >= 1 - CONFIDENCE
    return f"{value}: {UNSURE}" if weaker else value


def _of_claim(record: Mapping[str, Any]) -> float | None:
    if record.get("exact") or record["verdict"] not in (*CERTAIN, UNSURE):
        return None
    pair = "effect" in record
    contrasts = [{**record["effect"], "at_least": record["at_least"]}] if pair else record["contrasts"]
    number = len(contrasts)
    ratio = bool(record.get("ratio"))
    tests = [_of_contrast(one, number, ratio=ratio) for one in contrasts]
    below = [value for value, above in tests if not above]
    # it holds if all contrasts do, and fails if one does not
    whole = min(below) if record["verdict"] == "not reproduced" and below else max(value for value, _ in tests)
    return min(1.0, number * whole)


def _of_contrast(contrast: Mapping[str, Any], number: int, *, ratio: bool) -> tuple[float, bool]:
    """Two-sided p-value that an effect equals what is required, and whether it is above."""
    from scipy.stats import norm

    keys = ("difference" if "difference" in contrast else "effect", "low", "high", "at_least")
    effect, low, high, required = (math.log(contrast[key]) if ratio else float(contrast[key]) for key in keys)
    above = effect > required
    reach = effect - low if above else high - effect
    if reach <= 0:
        return (1.0 if effect == required else 0.0), above
    width = float(norm.isf((1 - CONFIDENCE) / 2 / number))
    return float(2 * norm.sf(abs(effect - required) / reach * width)), above
