"""Check that the stages a probe stage starts from have the hidden states that its probes read."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.judging.probes import Probe
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.task_families.encoding import MULTIPLE


def check_probing(stage: Stage, resolve: Callable[[str], Stage], family: str | None) -> Problem | None:
    """First problem of a probe stage on a dataset of `family` (None: unknown); None when it is valid."""
    if not stage.probes:
        return (
            "probes",
            f"a probe stage needs at least one probe; known: {listed(matching_members(Probe, lambda _: True))}",
        )
    names = [probe.name for probe in stage.probes]
    if twice := next((name for name in names if names.count(name) > 1), None):
        return "probes", f"{twice} is given twice; put the second into a probe stage of its own"
    subjects = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    for subject in subjects:
        if not isinstance(subject, str):
            return "start", "a probe stage starts from the stages it probes: a stage name or a list of stage names"
        probed = resolve(subject)
        if probed.kind.judges:
            return "start", f"stage {subject!r} is of kind {probed.kind} and produces no model; name stages that do"
        if graph := next((one.name for one in probed.compression if one.replaces_weights), None):
            return (
                "start",
                f"stage {subject!r} is an exported graph of {graph}, without hidden states; name the stage it starts "
                "from",
            )
        if probed.attention is not None and probed.attention.needs_abilities:
            return (
                "start",
                f"stage {subject!r} reads its rows with attention: {probed.attention.name}, and probes read the hidden "
                "states of whole texts; name a stage without a pattern",
            )
        for probe in stage.probes:
            if unfit := _unfit(probe, probed):
                return "probes", f"{probe.name} cannot probe stage {subject!r}: {unfit}"
        width = -(-stage.budget.length // MULTIPLE) * MULTIPLE
        limit = probed.backbone.max_length if probed.backbone is not None else None
        if limit is not None and width > limit:
            return (
                "budget",
                f"length: rows of {width} tokens do not fit the {limit} positions of stage {subject!r}; lower it",
            )
    for probe in stage.probes:
        if family is not None and probe.reads is not None and family not in probe.reads:
            fits = matching_members(Probe, lambda one: one.reads is None or family in one.reads)
            return (
                "probes",
                f"{probe.name} is defined for {listed(probe.reads)}; this dataset is {family}; probes that fit: "
                f"{listed(fits)}",
            )
    return None


def _unfit(probe: Probe, probed: Stage) -> str | None:
    """Reason why a probe cannot read the backbone of a stage; None when it can."""
    if probed.backbone is None:
        return None
    backbone = probed.backbone
    for ability, instead in probe.incompatible_abilities.items():
        if ability in backbone.offers:
            return f"its backbone ({backbone.label}) has {instead}"
    if lacking := probe.needs_abilities - backbone.offers:
        fits = ", ".join(backbone.names_offering(probe.needs_abilities))
        return (
            f"it needs a backbone that is {listed(lacking)}, and this one ({backbone.label}) is "
            f"{listed(backbone.offers)}; backbones that fit: {fits}"
        )
    return None
