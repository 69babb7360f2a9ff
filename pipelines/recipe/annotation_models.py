"""Check that a stage can read the networks that its annotations name."""

from __future__ import annotations

from collections.abc import Callable

from pipelines.parts.annotations import ModelAnnotation
from pipelines.recipe.model_annotations import model_annotations
from pipelines.recipe.problems import Problem
from pipelines.recipe.schema import Stage
from pipelines.vocabulary import Ability

NEEDED = frozenset({Ability.ONE_STACK})


def check_annotation_models(stage: Stage, resolve: Callable[[str], Stage]) -> Problem | None:
    """First problem of the networks that the annotations of a stage read; None when there is none."""
    for _, key, annotation in model_annotations(stage):
        if problem := _problem(annotation, resolve):
            return key, f"{annotation.name}: {problem}"
    return None


def _problem(annotation: ModelAnnotation, resolve: Callable[[str], Stage]) -> str | None:
    if annotation.folder:
        return "folder is part of saved models; leave it out, and name the stage whose network is read: from: <stage>"
    if not annotation.from_:
        return "name the stage whose network is read: from: <stage>"
    read, name = resolve(annotation.from_), f"from: {annotation.from_}"
    if read.kind.judges:
        return f"{name} is an {read.kind} stage, which makes no network; name one that trains"
    if read.backbone is None:
        return None
    if not read.backbone.offers >= NEEDED:
        fits = ", ".join(read.backbone.names_offering(NEEDED))
        return (
            f"{name} is a {read.backbone.label}, which has no state of its own for each token; backbones that do: "
            f"{fits}"
        )
    if read.backbone.added_embeddings or read.features:
        reads = "channels" if read.backbone.added_embeddings else "features"
        return f"{name} reads {reads} itself, and an annotation gives it a text alone; name a stage without {reads}"
    return None
