"""Check that the files which segmentations and corruptions read are there, are well formed, and are about the dataset's
language, and that rows are long enough for them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pipelines.recipe.problems import Problem, Setting
from pipelines.recipe.schema import Stage


@runtime_checkable
class LimitedByLanguage(Protocol):
    """A part whose source may have nothing for the language of a dataset."""

    @property
    def name(self) -> str: ...

    def unfit(self, language: str | None) -> str | None:
        """Why it cannot read texts in `language`; None if it can, or if the language is unknown."""


def check_corruption_sources(stage: Stage, setting: Setting) -> Problem | None:
    """The problem of the segmentation, or of the first corruption, whose source is not one for the dataset or whose
    rows are too short; None when there is none."""
    segmentation: object = stage.segmentation
    if isinstance(segmentation, LimitedByLanguage) and (reason := segmentation.unfit(setting.language)):
        return "segmentation", f"{segmentation.name}: {reason}"
    for one in stage.corruption:
        if isinstance(one, LimitedByLanguage) and (reason := one.unfit(setting.language)):
            return "corruption", f"{one.name}: {reason}"
        if reason := one.unfit_rows(stage.budget.length):
            return "corruption", f"{one.name}: {reason}"
    return None
