"""Profiles: pure functions Recipe → Recipe."""

from __future__ import annotations

from pipelines.recipe.lines import line_views
from pipelines.recipe.schema import Budget, NewWords, Recipe, Stage, TokenizerLimits

SMOKE_STEPS = 4
SMOKE_BATCH_TOKENS = 2048
SMOKE_EPOCHS = 0.01
"""Share of plain text that is read beside labelled examples, in a stage whose lines have both."""
SMOKE_WORDS, SMOKE_BYTES = 32, 300_000
SMOKE_SEEDS = 2
"""Most models of a stage in a smoke run. Two: the fewest between which seeds differ."""


def smoke(recipe: Recipe) -> Recipe:
    """Shrink a recipe: every stage and part, at a size that only proves that it runs."""
    return recipe.model_copy(update={"stages": {name: _tiny(stage) for name, stage in recipe.stages.items()}})


def smoke_run(recipe: Recipe) -> Recipe:
    """Shrink a recipe whose seeds nobody has asked for."""
    return smoke(few_seeds(recipe))


def few_seeds(recipe: Recipe) -> Recipe:
    """Train no more than SMOKE_SEEDS models of each stage."""
    stages = {
        name: stage.model_copy(update={"seeds": stage.seeds[:SMOKE_SEEDS]}) for name, stage in recipe.stages.items()
    }
    return recipe.model_copy(update={"stages": stages})


def _tiny(stage: Stage) -> Stage:
    budget = stage.budget
    small = {"length": min(budget.length, 64), "batch_tokens": min(budget.batch_tokens, SMOKE_BATCH_TOKENS)}
    if budget.tokens:
        small["tokens"] = min(budget.tokens, SMOKE_STEPS * small["batch_tokens"])
    plain = bool(stage.lines) and any(view.kind.reads_plain_text for view in line_views(stage).values())
    epochs = min(budget.epochs, SMOKE_EPOCHS if plain else 1.0) if budget.epochs else None
    update: dict[str, object] = {"budget": Budget.model_validate({**budget.model_dump(), **small, "epochs": epochs})}
    if stage.objective:
        update["objective"] = tuple(objective.tiny() for objective in stage.objective)
    if stage.lines:
        update["lines"] = {
            name: line.model_copy(update={"objective": tuple(one.tiny() for one in line.objective)})
            if line.objective
            else line
            for name, line in stage.lines.items()
        }
    if stage.suite:
        update["suite"] = tuple(evaluation.tiny() for evaluation in stage.suite)
    if stage.probes:
        update["probes"] = tuple(probe.tiny() for probe in stage.probes)
    if stage.backbone is not None:
        update["backbone"] = stage.backbone.tiny()
    if stage.estimate is not None:
        update["estimate"] = stage.estimate.tiny()
    if stage.vocabulary is not None:
        update["vocabulary"] = NewWords(tokens=min(stage.vocabulary.tokens, SMOKE_WORDS), sample_bytes=SMOKE_BYTES)
    # a tiny vocabulary leaves many tokens unknown, and splits words into many pieces
    update["limits"] = TokenizerLimits(unknown=1.0)
    if stage.tokenizer is not None:
        update["tokenizer"] = stage.tokenizer.tiny()
    return stage.model_copy(update=update)
