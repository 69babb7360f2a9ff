"""The form `steadier`: the seeds of a system are nearer to each other than those of a baseline."""

from __future__ import annotations

import math

from pydantic import Field

from pipelines.judging.claims import Contrast
from pipelines.judging.claims.pair import PairForm


class SteadierForm(PairForm, name="steadier"):
    """The standard deviation over seeds of a baseline's figure is at least so many times that of a system.

    The interval of the quotient is that of two normal samples (`spread.spread_quotient`). It says nothing about which
    of the two is better. Five seeds each show a quotient above 3.1, ten above 2.0, twenty above 1.6.
    """

    ratio = True
    of_spread = True
    fewest_seeds = 3

    at_least: float = Field(1.0, gt=0)
    """Quotient that must be reached."""

    def contrasts(self) -> tuple[Contrast, ...]:
        label = f"spread over seeds, {self.system} against {self.baseline}"
        return (Contrast(label, self.terms(), math.log(self.at_least), inclusive=True),)
