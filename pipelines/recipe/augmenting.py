"""Check the augmentation of a stage: what it changes, and that answers stay right."""

from __future__ import annotations

from functools import partial

from pipelines.judging.attacks import Attack
from pipelines.parts.corruptions import Corruption
from pipelines.recipe.problems import Problem, Setting, listed, matching_members
from pipelines.recipe.schema import Stage


def check_augmentation(stage: Stage, setting: Setting, *, alone: bool) -> Problem | None:
    """First problem of the augmentation of a line; None when there is none. A line on plain text that is not `alone`
    in its stage is left as it is."""
    if not stage.augmentation or (stage.kind.reads_plain_text and not alone):
        return None
    if stage.kind.reads_plain_text:
        fits = matching_members(Corruption, lambda _: True)
        return (
            "augmentation",
            "this changes labelled examples, and this stage reads plain text, which corruptions change: "
            f"{listed(fits)}",
        )
    if not stage.trains:
        return "augmentation", "this changes training examples, and this stage does not train; leave it out"
    for one in stage.augmentation:
        if unfit := one.attack.unfit(setting.family, setting.language):
            fits = matching_members(Attack, partial(_may_fit, setting=setting))
            return "augmentation", f"{unfit}; attacks that fit: {listed(fits)}"
        if missing := next((path for path in one.attack.reads_files if not path.is_file()), None):
            return (
                "augmentation",
                f"{one.attack.name}: there is no file {missing}; give a path relative to the current directory, or an "
                "absolute one",
            )
    return None


def _may_fit(attack: type[Attack], setting: Setting) -> bool:
    """Whether an attack is for examples of this family and language, as far as they are known."""
    of_family = setting.family is None or setting.family in attack.families
    return of_family and (setting.language is None or attack.languages is None or setting.language in attack.languages)
