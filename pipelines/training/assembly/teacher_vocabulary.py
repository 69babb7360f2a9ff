"""Comparison of a teacher's vocabulary with that of its student, where only their folders show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.models.opening import open_tokenizer
from pipelines.recipe.lines import line_views

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.recipe.job import Job


def check_teachers(job: Job, tokenizer: PreTrainedTokenizerFast) -> None:
    """Raise RecipeError if a teacher of the stage has another vocabulary than `tokenizer`."""
    views, own = line_views(job.stage), tokenizer.get_vocab()
    for line, folder in job.teachers.items():
        vocabulary = open_tokenizer(folder).get_vocab()
        if vocabulary == own:
            continue
        other, same = len(vocabulary), len(own.items() & vocabulary.items())
        where = f"{job.stage_name}, line {line}" if line else job.stage_name
        raise RecipeError(
            f"stage {where}: teacher: {views[line].teacher} has {other:,} tokens and this stage has {len(own):,}, of "
            f"which {same:,} are the same word with the same id; let both start from one stage or checkpoint"
        )
