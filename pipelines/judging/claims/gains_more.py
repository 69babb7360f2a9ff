"""The form `gains_more`: an improvement is larger here than there, a difference of differences."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import field_validator

from pipelines.judging.claims import ClaimForm, ComparedSide, Contrast, distinct


class GainsMoreForm(ClaimForm, name="gains_more"):
    """The first stage of `system` exceeds its second by more than the first of `baseline` exceeds its second.

    Over two datasets the claim's `data` is `{system: …, baseline: …}`, and both lists may name the same stages. Items
    of different datasets are independent, so that the variances of both gains add up.
    """

    roles: ClassVar[tuple[str, ...]] = ("system", "baseline")
    several_datasets: ClassVar[Literal["never", "optional", "always"]] = "optional"

    system: tuple[str, str]
    """With and without what is said to help, where it is said to help more."""
    baseline: tuple[str, str]
    """With and without it, where it is said to help less."""
    at_least: float = 0.0
    """Difference of the two gains that must be exceeded, in the figure's own unit."""

    @field_validator("system", "baseline")
    @classmethod
    def _two(cls, stages: tuple[str, str]) -> tuple[str, str]:
        distinct(stages)
        return stages

    @property
    def subject(self) -> str:
        return self.system[0]

    def sides(self) -> tuple[ComparedSide, ...]:
        pairs = {"system": self.system, "baseline": self.baseline}
        return tuple(ComparedSide(stage, role, role) for role, stages in pairs.items() for stage in stages)

    def contrasts(self) -> tuple[Contrast, ...]:
        terms = tuple(zip((1.0, -1.0, -1.0, 1.0), self.sides(), strict=True))
        label = f"gain of {self.system[0]} over {self.system[1]}, beyond that of {self.baseline[0]}"
        return (Contrast(f"{label} over {self.baseline[1]}", terms, self.at_least),)
