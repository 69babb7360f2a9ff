"""What forms have in common that compare a system with one baseline."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from pipelines.judging.claims import ClaimForm, ComparedSide, distinct


class PairForm(ClaimForm):
    """A system against a baseline, both trained and judged on the same data, under the same seeds."""

    system: str
    """Stage that should be better."""
    baseline: str
    """Stage that the system is compared with."""

    @model_validator(mode="after")
    def _two(self) -> Self:
        if not self.may_repeat:
            distinct((self.system, self.baseline))
        return self

    @property
    def may_repeat(self) -> bool:
        """Whether both sides may be the same stage, as where they are trained on different data."""
        return False

    @property
    def subject(self) -> str:
        return self.system

    def sides(self) -> tuple[ComparedSide, ...]:
        return ComparedSide(self.system), ComparedSide(self.baseline)

    def terms(self) -> tuple[tuple[float, ComparedSide], ...]:
        """The system's figure minus the baseline's."""
        system, baseline = self.sides()
        return (-1.0, baseline), (1.0, system)
