"""The form `exceeds`: the figure of one stage is above a number."""

from __future__ import annotations

from pipelines.judging.claims import ClaimForm, ComparedSide, Contrast


class ExceedsForm(ClaimForm, name="exceeds"):
    """The figure of a system is above a number, for figures that are comparisons themselves.

    Such a figure is measured within each model and example against a control of its own, as a fall beyond that without
    random words is; a second stage would not add to it. Where less is better, the figure is below the number.
    """

    short_key = "system"

    system: str
    """Stage whose figure is judged."""
    at_least: float = 0.0
    """Number that must be exceeded, in the figure's own unit; where less is better, with the opposite sign."""

    @property
    def subject(self) -> str:
        return self.system

    def sides(self) -> tuple[ComparedSide, ...]:
        return (ComparedSide(self.system),)

    def contrasts(self) -> tuple[Contrast, ...]:
        (side,) = self.sides()
        return (Contrast(f"{self.system} above {self.at_least:g}", ((1.0, side),), self.at_least),)
