"""Check that the tokenizer of a stage has what the other parts need."""

from __future__ import annotations

from pipelines.parts.tokenizers import Tokenizer
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage
from pipelines.recipe.starts import Checkpoint


def check_tokens(stage: Stage, part: str, needed: frozenset[str]) -> str | None:
    """Reason why the tokenizer cannot serve `part`; None when it can, or comes with a checkpoint and is unknown."""
    if stage.tokenizer is None or needed <= stage.tokenizer.offers:
        return None
    fits = matching_members(Tokenizer, lambda tokenizer: needed <= tokenizer.offers)
    return (
        f"{part} needs a tokenizer with {listed(needed)}; {stage.tokenizer.name} has "
        f"{listed(stage.tokenizer.offers)}; tokenizers that fit: {listed(fits)}"
    )


def check_vocabulary(stage: Stage) -> Problem | None:
    """Check that the vocabulary can grow, and that the stage trains the new words on plain text."""
    if stage.vocabulary is None:
        return None
    if not stage.kind.reads_plain_text or not isinstance(stage.start, (str, Checkpoint)):
        return (
            "vocabulary",
            "only a stage that continues another on plain text can add words: pretrain, adapt_domain or adapt_task "
            "with a start",
        )
    if unfit := check_tokens(stage, "vocabulary", frozenset({"new_words"})):
        return "vocabulary", unfit
    for objective in stage.objective:
        if objective.companion_heads:
            return (
                "vocabulary",
                f"{objective.name} trains a second network whose vocabulary cannot grow; remove vocabulary, or give "
                "the stage another objective",
            )
    return None
