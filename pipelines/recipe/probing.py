"""Have the stages that a probe stage starts from anything to look at?"""

from __future__ import annotations

from collections.abc import Callable

from pipelines.judging.probes import Probe
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.task_families.encoding import MULTIPLE


def check_probing(stage: Stage, resolve: Callable[[str], Stage], family: str | None) -> Problem | None:
    """The first thing wrong with a probe stage on a dataset of `family` (None: not known), or None."""
    if not stage.probes:
        return (
            "probes",
            f"a probe stage needs at least one probe; known: {listed(matching_members(Probe, lambda _: True))}",
        )
    names = [probe.name for probe in stage.probes]
    if twice := next((name for name in names if names.count(name) > 1), None):
        return "probes", f"{twice} is asked twice; put the second into a probe stage of its own"
    subjects = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    for subject in subjects:
        if not isinstance(subject, str):
            return "start", "a probe stage starts from the stages it looks at: a name or a list of names"
        looked = resolve(subject)
        if looked.kind.judges:
            return "start", f"stage {subject!r} is of the kind {looked.kind} and makes no model; name stages that do"
        if graph := next((one.name for one in looked.compression if one.replaces_weights), None):
            return (
                "start",
                f"stage {subject!r} is served as {graph} makes it, without hidden states; name what it starts from",
            )
        for probe in stage.probes:
            if blind := _blind(probe, looked):
                return "probes", f"{probe.name} cannot look at stage {subject!r}: {blind}"
        width = -(-stage.budget.length // MULTIPLE) * MULTIPLE
        if looked.backbone is not None and looked.backbone.longest is not None and width > looked.backbone.longest:
            return (
                "budget",
                f"length: rows of {width} tokens do not fit the {looked.backbone.longest} positions of stage {subject!r}; lower it",
            )
    for probe in stage.probes:
        if family is not None and probe.reads is not None and family not in probe.reads:
            fits = matching_members(Probe, lambda one: one.reads is None or family in one.reads)
            return (
                "probes",
                f"{probe.name} asks about {listed(probe.reads)}; this dataset is {family}; probes that fit: {listed(fits)}",
            )
    return None


def _blind(probe: Probe, looked: Stage) -> str | None:
    """Why the body of a stage has nothing for a probe."""
    if looked.backbone is None:
        return None
    body = looked.backbone
    for ability, instead in probe.cannot.items():
        if ability in body.offers:
            return f"its body ({body.described}) has {instead}"
    if lacking := probe.needs_abilities - body.offers:
        return (
            f"it needs a body that is {listed(lacking)}, and this one ({body.described}) is {listed(body.offers)}; bodies that "
            f"fit: {', '.join(body.fitting(probe.needs_abilities))}"
        )
    return None
