"""Check that a stage can read the networks that its `features` name."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.parts.backbones import Backbone
from pipelines.parts.heads import Head
from pipelines.recipe.features import FeatureSource
from pipelines.recipe.kinds import Kind
from pipelines.recipe.lines import line_views
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Untrained
from pipelines.vocabulary import Ability

NEEDED = frozenset({Ability.FEATURES})


def check_features(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First problem of the features of a stage, and of a network that needs some; None when there is none."""
    for view in line_views(stage).values():
        if view.teacher is None or view.teacher_vocabulary == "own_tokens":
            continue
        if _read_by(stage, resolve) != _read_by(resolve(view.teacher), resolve, view.teacher):
            return "teacher", "the teacher reads other features than this stage: give both the same, or neither any"
    if not stage.features:
        return _check_without(stage, resolve)
    if stage.kind is not Kind.FINETUNE:
        return "features", f"a finetune stage reads features, and this is a {stage.kind} stage; remove features"
    if stage.start is not None:
        return (
            "features",
            "a network that continues another keeps the features of that one; remove features, or start, and write "
            "tokenizer and backbone",
        )
    if stage.backbone is not None and not stage.backbone.offers >= NEEDED:
        fits = ", ".join(stage.backbone.names_offering(NEEDED))
        return "features", f"the backbone {stage.backbone.label} cannot read features; backbones that can: {fits}"
    heads = [view.head for view in line_views(stage).values() if view.head is not None]
    if unaligned := [head.name for head in heads if not head.aligns_words]:
        fits = listed(matching_members(Head, lambda head: head.aligns_words))
        return (
            "features",
            f"rows of {unaligned[0]} cannot be aligned by words with those of another tokenizer; heads whose rows "
            f"can: {fits}",
        )
    return next((problem for one in stage.features if (problem := _check_source(one, resolve)) is not None), None)


def _check_source(source: FeatureSource, resolve: Callable[[str], Stage]) -> Problem | None:
    if not source.from_:
        return "features", "name the stage whose network is read: from: <stage>"
    read = resolve(source.from_)
    name = f"from: {source.from_}"
    if read.kind.judges:
        return "features", f"{name} is an {read.kind} stage, which makes no network; name one that trains"
    if _read_by(read, resolve, source.from_):
        return "features", f"{name} reads features itself; name the stages that it reads"
    if read.backbone is not None and Ability.ONE_STACK not in read.backbone.offers:
        fits = ", ".join(read.backbone.names_offering(frozenset({Ability.ONE_STACK})))
        return (
            "features",
            f"{name} is a {read.backbone.label}, which has no state of its own for each token; backbones that do: "
            f"{fits}",
        )
    if adding := [one.name for one in read.strategy if one.extends]:
        return (
            "features",
            f"{name}: strategy {adding[0]} adds modules that are not part of its backbone; name the stage that it "
            "starts from",
        )
    if source.trains and isinstance(source.layers, int):
        return (
            "features",
            f"{name}: the layers above {source.layers} would get no gradient; use layers: mix, top or concat, or "
            "leave out trains",
        )
    return None


def _check_without(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    if isinstance(stage.start, Untrained) and _read_by(resolve(stage.start.untrained), resolve, stage.start.untrained):
        return (
            "start",
            f"untrained: {stage.start.untrained} reads features, and random ones are none; use like: "
            f"{stage.start.untrained} with the features to read",
        )
    embedded = getattr(stage.backbone, "embedding_size", None)
    if stage.start is None and isinstance(stage.backbone, Backbone) and embedded == 0:
        return "backbone", "embedding_size: 0 without features leaves nothing to read; give the stage features"
    return None


def _read_by(stage: Stage, resolve: Callable[[str], Stage], reference: str = "") -> tuple[FeatureSource, ...]:
    """The features of the network of a stage that `reference` names: its own, or those of the stage that it
    continues."""
    if stage.features or not isinstance(stage.start, str):
        return stage.features
    owner = reference.rpartition("/")[0]
    start = f"{owner}/{stage.start}" if owner and "/" not in stage.start else stage.start
    return _read_by(resolve(start), resolve, start)
