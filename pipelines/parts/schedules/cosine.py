"""Cosine: slowly away from the peak, slowly into zero."""

from __future__ import annotations

import math

from pipelines.parts.schedules import Warmed


class Cosine(Warmed, name="cosine"):
    """A linear rise, then half a cosine down to 0 (Loshchilov & Hutter 2017, eq. 5, without restarts)."""

    paper = "arXiv:1608.03983"

    def fall(self, left: float) -> float:
        return 0.5 * (1 - math.cos(math.pi * left))
