"""Few steps of the recipes that together run every part in every kind of stage, from every kind of start.

A step is wanted for the combinations (part or setting, kind of stage, kind of start) that it shows, and costs itself
and the steps before it that are not made yet. The cover is greedy: next comes the step that shows the most that is new
for what it costs. So a new recipe that combines something anew is run by itself, and one that repeats what others do is
planned only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

from pipelines.components import Component
from pipelines.recipe.catalogue import PARTS
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import line_views
from pipelines.recipe.plan import Plan, Step
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Checkpoint

Combination = tuple[str, str, Kind, str]
"""Key of a stage, member or setting, kind of the stage, kind of its start."""


def combinations_of(step: Step) -> frozenset[Combination]:
    """What a step shows."""
    stage, start = step.stage, start_of(step.stage)
    return frozenset((key, value, stage.kind, start) for key, value in (*parts_of(stage), *settings_of(step)))


def parts_of(stage: Stage) -> list[tuple[str, str]]:
    """The parts that a stage uses: a backbone by its architecture, and no part without effect on this kind of stage."""
    idle = {"layout"} if not stage.kind.reads_plain_text else set[str]()
    idle |= set() if stage.trains else {"layout", "schedule", "strategy", "optimizer"}
    found = {}
    for view in (stage, *line_views(stage).values()):
        for key in PARTS:
            value = getattr(view, key)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Component) and key not in idle:
                    found[key, str(getattr(part, "described", part.name))] = None
    return list(found)


def settings_of(step: Step) -> list[tuple[str, str]]:
    """What a step is asked for beside its parts: its tables, the family of its task, and what most stages leave out."""
    stage = step.stage
    asked = {
        "teacher": stage.teacher, "vocabulary": stage.vocabulary, "dropout": stage.dropout,
        "labelled": stage.budget.labelled, "patience": stage.budget.patience, "features": stage.features or None,
    }  # fmt: skip
    family = [] if stage.kind.reads_plain_text else [("family", step.family.name)]
    return [
        *(("corpus", name) for name in stage.corpus),
        *((key, "set") for key, value in asked.items() if value is not None),
        *family,
    ]


def start_of(stage: Stage) -> str:
    """Kind of start: nothing, another stage, one of another recipe, a checkpoint, random weights, several stages."""
    start = stage.start
    if start is None:
        return "nothing"
    if isinstance(start, tuple):
        return "stages"
    if isinstance(start, str):
        return "another recipe" if "/" in start else "stage"
    return "checkpoint" if isinstance(start, Checkpoint) else "random weights"


def stands_for(plan: Plan, step: Step) -> Step:
    """The step of the first seed: seeds differ in nothing that could break."""
    if step.stage.kind.judges or step.seed == step.stage.seeds[0]:
        return step
    wanted = (step.recipe, step.name, step.stage.seeds[0])
    return next(other for other in plan.steps if (other.recipe, other.name, other.seed) == wanted)


def needed_for(plans: Sequence[Plan]) -> dict[str, frozenset[str]]:
    """Fingerprint of every first seed's step → those of all steps that must be made for it, itself among them."""
    needed: dict[str, frozenset[str]] = {}
    for plan in plans:
        first: dict[str, str] = {}
        for step in plan.steps:
            first[step.fingerprint] = lead = stands_for(plan, step).fingerprint
            if lead == step.fingerprint:
                needed[lead] = frozenset({lead}).union(*(needed[first[parent]] for parent in step.parents.values()))
    return needed


def cover(needed: Mapping[str, Set[str]], shows: Mapping[str, Set[Combination]]) -> frozenset[str]:
    """The fingerprints of the steps to be made: every combination is shown by one of them."""
    left = _union(shows.values())
    made = frozenset[str]()
    gaining = dict(needed)
    while left:
        gains = {name: len(_union(shows[one] for one in steps - made) & left) for name, steps in gaining.items()}
        # what shows nothing new will not show more once others are made
        gaining = {name: steps for name, steps in gaining.items() if gains[name]}
        best = max(gaining, key=lambda name: gains[name] / max(1, len(gaining[name] - made)))
        left -= _union(shows[one] for one in needed[best])
        made |= needed[best]
    return made


def _union(sets: Iterable[Set[Combination]]) -> frozenset[Combination]:
    return frozenset[Combination]().union(*sets)
