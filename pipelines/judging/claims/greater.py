"""The form `greater`: a system is better than a baseline."""

from __future__ import annotations

from pipelines.judging.claims import Contrast
from pipelines.judging.claims.pair import PairForm


class GreaterForm(PairForm, name="greater"):
    """The figure of a system is better than that of a baseline, on the same items.

    A claim may give these keys without the form: `system`, `baseline` and `at_least`.
    """

    at_least: float = 0.0
    """Difference that must be exceeded, in the figure's own unit; a negative one is what the form `within` says."""

    def contrasts(self) -> tuple[Contrast, ...]:
        return (Contrast(f"{self.system} against {self.baseline}", self.terms(), self.at_least),)
