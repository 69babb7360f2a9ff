"""Profiles: pure functions Recipe → Recipe."""

from __future__ import annotations

from pipelines.recipe.schema import Budget, NewWords, Recipe, Stage, TokenizerLimits

SMOKE_STEPS = 4
SMOKE_BATCH_TOKENS = 2048
SMOKE_WORDS, SMOKE_BYTES = 32, 300_000


def smoke(recipe: Recipe) -> Recipe:
    """Shrink a recipe: every stage and part, at a size that only proves that it runs."""
    return recipe.model_copy(update={"stages": {name: _tiny(stage) for name, stage in recipe.stages.items()}})


def _tiny(stage: Stage) -> Stage:
    budget = stage.budget
    small = {"length": min(budget.length, 64), "batch_tokens": min(budget.batch_tokens, SMOKE_BATCH_TOKENS)}
    if budget.tokens:
        small["tokens"] = min(budget.tokens, SMOKE_STEPS * small["batch_tokens"])
    update: dict[str, object] = {
        "budget": Budget.model_validate(
            {**budget.model_dump(), **small, "epochs": min(budget.epochs, 1.0) if budget.epochs else None}
        )
    }
    if stage.suite:
        update["suite"] = tuple(evaluation.tiny() for evaluation in stage.suite)
    if stage.probes:
        update["probes"] = tuple(probe.tiny() for probe in stage.probes)
    if stage.backbone is not None:
        update["backbone"] = stage.backbone.tiny()
    if stage.vocabulary is not None:
        update["vocabulary"] = NewWords(tokens=min(stage.vocabulary.tokens, SMOKE_WORDS), sample_bytes=SMOKE_BYTES)
    # a tiny vocabulary leaves many tokens unknown, and splits words into many pieces
    update["limits"] = TokenizerLimits(unknown=1.0)
    if stage.tokenizer is not None:
        update["tokenizer"] = stage.tokenizer.tiny()
    return stage.model_copy(update=update)
