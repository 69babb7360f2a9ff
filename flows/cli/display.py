"""What the command line shows: recipes, plans and scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.lineage.store import Store
    from pipelines.recipe.plan import Plan
    from pipelines.recipe.schema import Recipe, Stage
    from tasks.datasets.prepared import Prepared


def show_recipe(console: Console, recipe: Recipe) -> None:
    """One line a stage: what it does, on what, from where, for how long."""
    console.print(f"{recipe.name} {recipe.paper}", style="bold")
    for key, value in recipe.settings.items():
        console.print(f"  in the paper, {key}: {value}", soft_wrap=True)
    for name, stage in recipe.stages.items():
        words = (
            [o.name for o in stage.objective] or [s.name for s in stage.suite] or [c.name for c in stage.compression]
        )
        parts = [f"{name:<14}{stage.kind:<13}{', '.join(words)}", f"on {' and '.join(stage.corpus)}", _start(stage)]
        if stage.trains:
            parts.append(
                f"{stage.budget.tokens:,} tokens" if stage.budget.tokens else f"{stage.budget.epochs:g} epochs"
            )
        console.print(" · ".join(parts), soft_wrap=True)


def show_plan(
    console: Console, root: Path, plan: Plan, prepared: Prepared, stored: set[str], store: Store, threads: int | None
) -> None:
    """Print a table of steps: fingerprints, which are in the store, and the time that the rest would take on `threads` cores."""
    from tasks.estimates.duration import estimate_run

    columns = ("step", "kind", "fingerprint", "store", "tokens", "minutes")
    table = Table(*columns, title=f"plan of {plan.recipe.name}", title_justify="left")
    todo = {step.fingerprint for step in plan.missing(stored)}
    estimated = estimate_run(root, plan, prepared, stored, list(store.all()), threads)
    for step in plan.steps:
        estimate, needed = estimated.steps[step.fingerprint], step.fingerprint in todo
        state = "to compute" if needed else "cached"
        tokens = f"{estimate.tokens / 1e6:.2f}M" if estimate.tokens else ""
        minutes = f"{estimate.seconds / 60:.1f}" if needed else ""
        table.add_row(step.label, step.stage.kind, step.fingerprint[:12], state, tokens, minutes)
    console.print(table)
    console.print(f"{len(todo)} of {len(plan.steps)} steps to compute, {estimated.text}")


def compared_seeds(plan: Plan) -> int | None:
    """Seeds of each of the stages that an evaluate stage of `plan` compares, the fewest; None where none does."""
    found: list[int] = []
    for judging in plan.steps:
        named = {name for one in judging.stage.suite for name in one.subjects}
        seeds = [sum(step.name == name for step in plan.steps) for name in named]
        found += [min(seeds)] if len(named) > 1 else []
    return max(1, min(found)) if found else None


def show_reach(console: Console, prepared: Prepared, seeds: int) -> None:
    """Before anything is computed: the smallest difference between two stages that could be seen at all."""
    from pipelines.judging.certainty.significance import DISAGREEMENT, SEED_DEVIATION, minimum_detectable_difference

    items = prepared.summary["tables"]["test"]["documents"]
    console.print(
        f"{items:,} test examples and {seeds} seed{'s' if seeds > 1 else ''} of each side show a difference of "
        f"{100 * minimum_detectable_difference(items, seeds):.1f} points four times in five (were the two apart on {DISAGREEMENT:.0%} of the "
        f"examples, and seeds by {100 * SEED_DEVIATION:g} point)",
        soft_wrap=True,
    )


def show_scores(console: Console, store: Store, plan: Plan) -> None:
    """Tables of what the evaluate stages of `plan` found; nothing where they have not run."""
    from pipelines.reports.elements.wording import metric_name
    from tasks.records.reports import score_tables

    for found in score_tables(store, plan):
        what = "answers to prompts" if found.prompted else "test scores"
        title = f"{found.stage}: {what} with 95 % intervals, {found.record['examples']} examples"
        table = Table("model", *map(metric_name, found.metrics), title=Text(title), title_justify="left")
        for row in found.rows:
            cells = [_estimate(row.scores[metric]) if metric in row.scores else "" for metric in found.metrics]
            table.add_row(Text(row.name), *map(Text, cells))
        console.print(table)


def _estimate(score: Mapping[str, Any]) -> str:
    return f"{score['mean']:.3f} {score['low']:.3f}–{score['high']:.3f}"


def show_next(console: Console, plan: Plan, models: Mapping[str, str]) -> None:
    """What can be done with what `plan` made; `models` are those that were registered now."""
    from pipelines.recipe.final_models import final_model, lineage_steps

    final = final_model(lineage_steps(plan))
    known = next(iter(models), final.stage if final else plan.steps[-1].name)
    words = ["cursus up", f"cursus lineage {known}"]
    if final is not None:
        family = next(step.family for step in plan.steps if step.fingerprint == final.fingerprint)
        words.append("cursus predict 'a text'" if family.is_single_text else "cursus predict --json < examples.jsonl")
    console.print(f"next     {'   ·   '.join(words)}", soft_wrap=True)


def _start(stage: Stage) -> str:
    start = stage.start
    if start is None:
        return "from nothing"
    if isinstance(start, tuple):
        return f"from {', '.join(start)}"
    if isinstance(start, str):
        return f"from {start}"
    if hasattr(start, "untrained"):
        return f"from random weights shaped like {start.untrained}"
    return f"from {start.checkpoint}"
