"""Cosine decay."""

from __future__ import annotations

import math

from pipelines.parts.schedules import WarmupSchedule


class CosineSchedule(WarmupSchedule, name="cosine"):
    """Linear warmup, then decay along half a cosine to 0 (Loshchilov & Hutter 2017, eq. 5, without restarts)."""

    paper = "arXiv:1608.03983"

    def decay(self, remaining: float) -> float:
        return 0.5 * (1 - math.cos(math.pi * remaining))
