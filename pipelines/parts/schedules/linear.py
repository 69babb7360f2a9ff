"""Linear decay to zero."""

from __future__ import annotations

from pipelines.parts.schedules import WarmupSchedule


class LinearSchedule(WarmupSchedule, name="linear"):
    """Linear warmup, then linear decay to 0 (Devlin et al. 2018, appendix A.2)."""

    paper = "arXiv:1810.04805"

    def decay(self, remaining: float) -> float:
        return remaining
