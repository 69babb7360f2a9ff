"""The stages that a stage names."""

from __future__ import annotations

from pipelines.recipe.model_annotations import read_models
from pipelines.recipe.schema import Stage


def references(stage: Stage) -> list[str]:
    """The stages that a stage names as starts, teacher, features or annotations, in this order."""
    start = stage.start if isinstance(stage.start, tuple) else (stage.start,)
    named = [one if isinstance(one, str) else getattr(one, "untrained", None) for one in start]
    read = [source.from_ for source in stage.features]
    read += [annotation.from_ for _, _, annotation in read_models(stage)]
    return [one for one in (*named, stage.head_start, stage.teacher, *read) if one is not None]
