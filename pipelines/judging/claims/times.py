"""The form `times`: a system is several times better than a baseline."""

from __future__ import annotations

import math

from pydantic import Field

from pipelines.judging.claims import Contrast
from pipelines.judging.claims.pair import PairForm


class TimesForm(PairForm, name="times"):
    """The figures of a system and a baseline have at least a quotient: so many times smaller, faster, or higher.

    Of a figure of which less is better, the baseline is divided by the system. The interval is that of the logarithm,
    so that each end of it is a factor; over several seeds, figures are averaged geometrically.
    """

    ratio = True

    at_least: float = Field(gt=0)
    """Quotient that must be reached: 4 for four times as small; 0.97 for at most three per cent worse."""

    def contrasts(self) -> tuple[Contrast, ...]:
        label = f"{self.system} against {self.baseline}"
        return (Contrast(label, self.terms(), math.log(self.at_least), inclusive=True),)
