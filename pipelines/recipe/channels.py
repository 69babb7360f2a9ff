"""Check the channels of a stage: what its annotations make, and from what."""

from __future__ import annotations

from collections import Counter

from pipelines.errors import DataError
from pipelines.recipe.problems import Problem, Setting, listed
from pipelines.recipe.schema import Stage
from pipelines.task_families import TaskFamily
from pipelines.vocabulary import WORD_STARTS, Channel


def stage_channels(stage: Stage) -> list[Channel]:
    """The channels alongside the tokens of a stage's rows; word starts only on plain text."""
    words = [WORD_STARTS] if stage.segmentation is not None and stage.kind.reads_plain_text else []
    return [*words, *(channel for one in stage.annotations for channel in one.channels)]


def check_channels(stage: Stage, setting: Setting) -> Problem | None:
    """Check that every channel has one maker, which finds its files and columns."""
    names = Counter(channel.name for channel in stage_channels(stage))
    if twice := next((name for name, count in names.items() if count > 1), None):
        return "annotations", f"two parts of this stage make the channel {twice!r}; keep one"
    for one in stage.annotations:
        if missing := next((path for path in one.reads_files if not path.is_file()), None):
            return (
                "annotations",
                f"{one.name}: there is no file {missing}; give a path relative to the current directory, or an "
                "absolute one",
            )
        try:
            one.check_files()
        except DataError as error:
            return "annotations", f"{one.name}: {error}"
        if not stage.kind.reads_plain_text and setting.family is not None:
            family = TaskFamily.model_validate(setting.family)
            if lacking := set(one.columns) - set(family.columns):
                return (
                    "annotations",
                    f"{one.name} reads the columns {listed(one.columns)}, and an example of {family.name} has no "
                    f"{listed(lacking)}, only {listed(family.columns)}; leave the annotation out, or choose a dataset "
                    "that has them",
                )
    return None
