"""Forms of claims: how the figures of several stages are to differ.

    form.sides()          the models that are measured, each trained on one dataset and judged on one
    form.contrasts()      weighted sums of their figures, each with the least value that the claim needs
    judge(form, …)        an interval for each, simultaneous over all of them, and the verdict

A figure enters a contrast so that more is better: where less is (perplexity, bytes), with the opposite sign. Above zero
is then always what a claim says. A new form is one file: its keys, its sides, and its contrasts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pipelines.components import Component, did_you_mean

Verdict = Literal["reproduced", "not reproduced", "cannot tell at this scale", "too near chance"]
"""The last where no side has learnt enough for a verdict (`chance.near_chance`)."""


@dataclass(frozen=True)
class ComparedSide:
    """Models of a stage in a claim, and the data that they see."""

    stage: str
    trained: str = ""
    """Role of the dataset that it is trained on, a key of the claim's `data`; empty where the claim has one dataset."""
    judged: str = ""
    """Role of the dataset that it is judged on."""


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of the figures of sides."""

    label: str
    """What is compared, in words."""
    terms: tuple[tuple[float, ComparedSide], ...]
    at_least: float = 0.0
    """What it must exceed; with `inclusive`, reach."""
    inclusive: bool = False


class ClaimForm(Component):
    """A form of claims."""

    default_name: ClassVar[str] = "greater"
    """The form of a claim that gives `system` and `baseline` without one."""
    roles: ClassVar[tuple[str, ...]] = ()
    """Keys of `data` where a claim of this form is about several datasets; empty: one dataset."""
    several_datasets: ClassVar[Literal["never", "optional", "always"]] = "never"
    short_key: ClassVar[str] = ""
    """The option that a claim gives when it writes a list instead of a mapping; empty where it has to be a mapping."""
    ratio: ClassVar[bool] = False
    """Whether figures are compared by quotients, so that contrasts are of their logarithms."""
    of_spread: ClassVar[bool] = False
    """Whether what is compared is how far apart the seeds of a stage are in the figure, instead of the figure; of this,
    less is always better."""
    fewest_seeds: ClassVar[int] = 1
    """Number of models of each stage without which nothing can be said."""

    @property
    @abstractmethod
    def subject(self) -> str:
        """The stage that the claim is about."""

    @abstractmethod
    def sides(self) -> tuple[ComparedSide, ...]:
        """The models that are measured, the best of the claim first."""

    @abstractmethod
    def contrasts(self) -> tuple[Contrast, ...]:
        """What must hold, all of it, for the claim to hold."""


def read_form(name: str, value: Any) -> ClaimForm:
    """The form `name` with the options `value`, a mapping, or the list or name that stands for its `short_key`.

    Raises ValueError, or pydantic's ValidationError, which is one.
    """
    member = ClaimForm.members[name]
    assert issubclass(member, ClaimForm)
    if not isinstance(value, dict):
        if not member.short_key:
            raise ValueError(f"{name} is a mapping with the keys {', '.join(member.model_fields)}, got {value!r}")
        value = {member.short_key: value}
    return ClaimForm.model_validate({"name": name, **value})


def distinct(stages: Sequence[str], least: int = 2) -> Sequence[str]:
    """`stages`, if they are at least so many and differ. Raises ValueError otherwise."""
    if len(stages) < least:
        raise ValueError(f"a comparison needs at least {least} stages, got {', '.join(stages) or 'none'}")
    if twice := next((one for one in stages if list(stages).count(one) > 1), None):
        raise ValueError(f"the stage {twice!r} is given twice")
    return stages


def unknown_form(name: str) -> str:
    """Message for a form that is not known."""
    return f"there is no form of claims {name!r}.{did_you_mean(name, ClaimForm.members)}"
