"""The form `falls_with_shift`: what is learned on other data is worth less."""

from __future__ import annotations

from typing import ClassVar, Literal

from pipelines.judging.claims import ClaimForm, ComparedSide, Contrast


class FallsWithShiftForm(ClaimForm, name="falls_with_shift"):
    """A system that is trained on one dataset and judged on another is worse there than the same system trained on the
    dataset on which it is judged.

    The claim's `data` names both: `{trained: …, judged: …}`, as older and newer texts. Both systems are judged on the
    same examples, so that what differs between the two is not how hard the tests are; give both datasets equally many
    labelled examples.
    """

    roles: ClassVar[tuple[str, ...]] = ("trained", "judged")
    several_datasets: ClassVar[Literal["never", "optional", "always"]] = "always"
    short_key = "system"

    system: str
    """Stage that is trained on either dataset."""
    at_least: float = 0.0
    """Loss that must be exceeded, in the figure's own unit."""

    @property
    def subject(self) -> str:
        return self.system

    def sides(self) -> tuple[ComparedSide, ...]:
        return ComparedSide(self.system, "judged", "judged"), ComparedSide(self.system, "trained", "judged")

    def contrasts(self) -> tuple[Contrast, ...]:
        own, shifted = self.sides()
        terms = ((-1.0, shifted), (1.0, own))
        return (Contrast(f"{self.system} trained there against trained elsewhere", terms, self.at_least),)
