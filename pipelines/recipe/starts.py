"""What a stage starts from, other than the result of another stage."""

from __future__ import annotations

from pipelines.recipe.strict import StrictModel


class Checkpoint(StrictModel):
    """Start from a Hugging Face folder that this house did not train."""

    checkpoint: str
    """A folder, or `package:name/sub/folder` for one inside an installed Python package."""
    missing: tuple[str, ...] = ()
    """Glob patterns of weights that the new network has and the checkpoint lacks: initialised anew."""
    unused: tuple[str, ...] = ()
    """Glob patterns of weights that the checkpoint has and the new network lacks: dropped."""


class Untrained(StrictModel):
    """Start from the same body and vocabulary as a stage's result, with random weights: the "from scratch" baseline."""

    untrained: str
