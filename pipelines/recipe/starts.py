"""Starts of a stage other than the result of another stage: a checkpoint, random weights, or two stages."""

from __future__ import annotations

from typing import NamedTuple

from pipelines.recipe.strict import StrictModel

HEAD_START = "head_start"
"""Role, among the parents of a step, of the stage whose head it continues, where that is another than `start`."""


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


class TwoStarts(NamedTuple):
    """Start with the backbone of one stage, its vocabulary and all that is below the head, and the head of another."""

    backbone: str
    """The stage (or `recipe/stage`) whose backbone is continued."""
    head: str
    """The stage (or `recipe/stage`) whose head of the same kind, over the same labels, is continued."""


def two_starts(start: object) -> TwoStarts | None:
    """The two starts of a stage, as a recipe writes them; None for any other start. ValueError where one is missing."""
    if not isinstance(start, dict) or not start.keys() & set(TwoStarts._fields):
        return None
    if start.keys() != set(TwoStarts._fields) or not all(isinstance(one, str) for one in start.values()):
        message = "start: two stages are written {backbone: <stage>, head: <stage>}, and a single one by its name"
        raise ValueError(message)
    return TwoStarts(**start)
