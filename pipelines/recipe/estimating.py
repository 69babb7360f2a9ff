"""Check that what is estimated by counting is not asked to train by gradient, and the other way round."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.errors import DataError
from pipelines.parts.backbones import Backbone
from pipelines.parts.estimates import Estimation
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Untrained
from pipelines.vocabulary import Ability

BY_GRADIENT = (
    "objective", "strategy", "corruption", "schedule", "optimizer", "dropout", "teacher", "compression", "vocabulary",
    "layout", "lines", "mixing", "features",
)  # fmt: skip
"""Keys of a stage that only training by gradient reads, or that change weights which are already there."""
BUDGET_BY_GRADIENT = ("epochs", "labelled", "patience")
"""Keys of a budget that count passes or examples."""


def check_estimate(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First problem of a stage with `estimate`, or of one that trains a counted backbone; None when it is valid."""
    if stage.estimate is None:
        return _check_gradient(stage)
    name = stage.estimate.name
    if not stage.kind.reads_plain_text:
        return (
            "estimate",
            f"{name} counts plain text, and a {stage.kind} stage reads labels; estimate in a pretrain stage, which "
            "other stages can start from",
        )
    for key in BY_GRADIENT:
        field = Stage.model_fields[key]
        if getattr(stage, key) != field.get_default(call_default_factory=True):
            return (
                key,
                f"the stage is estimated by {name}, in one pass of counting without gradients, so that {key} has no "
                f"effect; remove {key}, or remove estimate to train by gradient",
            )
    for key in BUDGET_BY_GRADIENT:
        if getattr(stage.budget, key) is not None:
            return "budget", f"{key}: {name} reads its corpus once; remove {key}, or limit the corpus with tokens"
    if stage.estimate.reads_pairs and len(stage.texts) != 2:
        return (
            "texts",
            f"{name} reads texts and their translations: give the two columns of the corpus that hold them, for "
            "example texts: [text, translation]",
        )
    if stage.budget.tokens == 0:
        return "budget", f"tokens: {name} estimates nothing from no text; remove tokens to read the whole corpus"
    if missing := next((path for path in stage.estimate.reads_files if not path.is_file()), None):
        return (
            "estimate",
            f"{name}: there is no file {missing}; give a path relative to the current directory, or an absolute one",
        )
    try:
        stage.estimate.check_files()
    except DataError as error:
        return "estimate", f"{name}: {error}"
    if stage.start is not None and not isinstance(stage.start, Untrained):
        source = stage.start if isinstance(stage.start, str) else "the checkpoint"
        return (
            "start",
            f"counts continue no weights: {name} estimates all of them from the text of its own stage; for the "
            f"tokenizer of {source} alone write `start: {{untrained: stage}}`, and to count several texts together "
            "list them in corpus",
        )
    if isinstance(stage.start, Untrained):
        resolve(stage.start.untrained)
    if stage.backbone is not None and (lacking := stage.estimate.needs_abilities - stage.backbone.offers):
        label, offers = stage.backbone.label, stage.backbone.offers
        suitable = matching_members(Estimation, lambda one: one.needs_abilities <= offers)
        instead = f"; estimates of {label}: {listed(suitable)}" if suitable else ""
        return (
            "estimate",
            f"{name} estimates a backbone that is {listed(stage.estimate.needs_abilities)}, and this one ({label}) is "
            f"not {listed(lacking)}; remove estimate and give an objective and a strategy, or choose a backbone that "
            f"fits: {', '.join(stage.backbone.names_offering(stage.estimate.needs_abilities))}{instead}",
        )
    return None


def _check_gradient(stage: Stage) -> Problem | None:
    """Check that no stage without `estimate` changes or continues a counted backbone."""
    offers = stage.backbone.offers if stage.backbone is not None else frozenset[Ability]()
    if stage.backbone is None or Ability.COUNTED not in offers:
        return None
    if stage.kind.reads_plain_text and stage.budget.tokens == 0 and not stage.objective and not stage.lines:
        return None  # the start itself
    label = stage.backbone.label
    by_gradient = [one.label for one in _learning()]
    if stage.start is not None:
        return (
            "start",
            f"its backbone ({label}) is counted, and a counted backbone cannot continue by gradient: it has tables and "
            "no parameters to train; start from a stage that was trained by gradient, and compare both in an evaluate "
            f"stage; backbones that learn by gradient: {', '.join(by_gradient)}",
        )
    fits = matching_members(Estimation, lambda one: one.needs_abilities <= offers)
    return (
        "objective" if stage.objective else "backbone",
        f"the backbone {label} is counted, and a counted backbone cannot be trained by gradient: it has tables and no "
        f"parameters to train; instead of objective and strategy write estimate, one of {listed(fits)}, or choose "
        f"another backbone: {', '.join(by_gradient)}",
    )


def _learning() -> list[Backbone]:
    members = [member for _, member in sorted(Backbone.members.items()) if issubclass(member, Backbone)]
    return [one for member in members for one in member.variants() if Ability.COUNTED not in one.offers]
