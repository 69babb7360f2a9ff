"""What nothing can be built upon: a network whose weights have few bits, or one whose parts would be renumbered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.models.opening import ModelRecord
from pipelines.parts.compressions import Level

if TYPE_CHECKING:
    from pipelines.recipe.schema import Stage


def refuse_finished(stage: Stage, record: ModelRecord, start: Path | None) -> None:
    """Raise RecipeError if `stage` trains, or compresses more coarsely, the network of `record` that it starts from, or
    removes layers beside which that has modules.

    A recipe is refused for it when it is loaded; a folder from elsewhere, here.
    """
    extending = next((one.name for one in record.extensions if one.extends_lines), None)
    if extending is not None and any(one.level is Level.LAYERS for one in stage.compression):
        raise RecipeError(
            f"{start}: strategy {extending} has modules of each line beside its layers; compress the model before it"
        )
    for change in record.changes:
        name, level = change.compression.name, change.compression.level
        if level is Level.BITS and (stage.trains or stage.compression):
            raise RecipeError(
                f"{start}: {name} has stored its weights with few bits, and nothing trains or compresses them further; "
                "start from the model before it"
            )
        coarser = next((one.name for one in stage.compression if one.level < level), None)
        if coarser is not None:
            raise RecipeError(f"{start}: {coarser} would renumber what {name} has changed of it; apply {coarser} first")
