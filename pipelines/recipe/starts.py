"""Starts of a stage other than the result of another stage: a checkpoint, or random weights."""

from __future__ import annotations

from pipelines.recipe.strict import StrictModel


class Checkpoint(StrictModel):
    """Start from a Hugging Face folder that was trained elsewhere."""

    checkpoint: str
    """Path of a folder, or `package:name/sub/folder` for a folder inside an installed Python package."""
    missing: tuple[str, ...] = ()
    """Glob patterns of weights that the network has and the checkpoint lacks: randomly initialised."""
    unused: tuple[str, ...] = ()
    """Glob patterns of weights that the checkpoint has and the network lacks: dropped."""


class Untrained(StrictModel):
    """Start with the backbone and vocabulary of a stage's result, but random weights: the "from scratch" baseline."""

    untrained: str
    """The stage (or `recipe/stage`) whose architecture and tokenizer are taken over."""
