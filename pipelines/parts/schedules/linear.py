"""Linear: down to zero along a straight line."""

from __future__ import annotations

from pipelines.parts.schedules import Warmed


class Linear(Warmed, name="linear"):
    """A linear rise, then a linear fall to 0 (Devlin et al. 2018, appendix A.2)."""

    paper = "arXiv:1810.04805"

    def fall(self, left: float) -> float:
        return left
