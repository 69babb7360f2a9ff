"""Check that a stage names the network that its start brings, or none."""

from __future__ import annotations

from pipelines.errors import RecipeError
from pipelines.parts.backbones import Backbone
from pipelines.recipe.checkpoint import backbone_of
from pipelines.recipe.problems import Problem
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Checkpoint


def unlike_start(stage: Stage, started: Backbone | None) -> Problem | None:
    """The problem of a stage whose backbone is not that of the stage it starts from, `started`; embeddings may be
    added."""
    if stage.backbone is None or started is None:
        return None
    own, before = (one.model_dump(exclude={"embeddings"}) for one in (stage.backbone, started))
    if own == before:
        return None
    return (
        "backbone",
        "a stage that starts from another has the network of that, which is not the one written here; remove backbone, "
        "or all of it but the embeddings that are added, or remove start and name a tokenizer",
    )


def unlike_checkpoint(stage: Stage, start: Checkpoint) -> Problem | None:
    """The problem of a stage whose backbone is not that of the folder that it starts from."""
    if stage.backbone is None:
        return None
    try:
        loaded = backbone_of(start.checkpoint)
    except RecipeError as error:
        return "start", str(error)
    if (loaded.label, loaded.max_length) == (stage.backbone.label, stage.backbone.max_length):
        return None
    return (
        "backbone",
        f"the backbone of the checkpoint is {_size(loaded)}, but this stage says {_size(stage.backbone)}; "
        f"remove backbone",
    )


def _size(backbone: Backbone) -> str:
    return f"{backbone.label}, {backbone.max_length or 'any number of'} positions"
