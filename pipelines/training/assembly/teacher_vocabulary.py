"""Comparison of a teacher's vocabulary with that of its student, where only their folders show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.models.opening import open_tokenizer
from pipelines.recipe.lines import line_views

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from pipelines.recipe.job import Job
    from pipelines.training.assembly.shared_tokens import SharedTokens


def shared_tokens_of(job: Job, tokenizer: PreTrainedTokenizerFast) -> dict[str, SharedTokens]:
    """Line → the tokens that its teacher shares with `tokenizer`, for the lines whose teacher has another vocabulary.

    Raises RecipeError if such a stage does not map the teacher's tokens, or cannot.
    """
    from pipelines.training.assembly.shared_tokens import SharedTokens

    views, own = line_views(job.stage), tokenizer.get_vocab()
    result = {}
    for line, folder in job.teachers.items():
        if views[line].teacher_vocabulary == "own_tokens":
            continue
        teacher = open_tokenizer(folder)
        vocabulary = teacher.get_vocab()
        if vocabulary == own:
            continue
        where = f"{job.stage_name}, line {line}" if line else job.stage_name
        if views[line].teacher_vocabulary is None:
            other, same = len(vocabulary), len(own.items() & vocabulary.items())
            raise RecipeError(
                f"stage {where}: teacher: {views[line].teacher} has {other:,} tokens and this stage has {len(own):,}, "
                f"of which {same:,} are the same word with the same id; let both start from one stage or checkpoint, "
                "or set teacher_vocabulary: shared_tokens, or own_tokens for labelled examples"
            )
        try:
            result[line] = SharedTokens(tokenizer, teacher)
        except RecipeError as error:
            raise RecipeError(f"stage {where}: teacher_vocabulary: {views[line].teacher}: {error}") from None
    return result
