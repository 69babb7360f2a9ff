"""What the command line shows: recipes, plans and scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pipelines.lineage.store import Store
    from pipelines.recipe.plan import Plan
    from pipelines.recipe.schema import Recipe, Stage


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


def show_plan(console: Console, plan: Plan, stored: set[str], store: Store, threads: int | None) -> None:
    """A table of steps: fingerprints, what is in the store, what the rest would take on `threads` cores."""
    from tasks.estimates import estimate

    columns = ("step", "kind", "fingerprint", "store", "tokens", "minutes")
    table = Table(*columns, title=f"plan of {plan.recipe.name}", title_justify="left")
    todo = {step.fingerprint for step in plan.missing(stored)}
    total = 0.0
    for step in plan.steps:
        guess = estimate(step, plan, store, threads)
        needed = step.fingerprint in todo
        total += guess.minutes if needed else 0
        state = "cached" if step.fingerprint in stored else "to compute" if needed else "not needed"
        tokens = f"{guess.tokens / 1e6:.2f}M" if guess.tokens else ""
        minutes = f"{guess.minutes:.1f}" if needed else ""
        table.add_row(step.label, step.stage.kind, step.fingerprint[:12], state, tokens, minutes)
    console.print(table)
    console.print(f"{len(todo)} of {len(plan.steps)} steps to compute, about {total:.0f} minutes")


def show_scores(console: Console, store: Store, plan: Plan) -> None:
    """A table of what the evaluate stages of `plan` found; nothing where they have not run."""
    from tasks.reports import scores

    rows = scores(store, plan)
    if not rows:
        return
    columns = ("model", "accuracy", "95 % interval", "macro-F1", "95 % interval")
    table = Table(*columns, title="test scores", title_justify="left")
    for row in rows:
        cells = [row["model"]]
        for metric in ("accuracy", "macro_f1"):
            value = row[metric]
            cells += [f"{value['mean']:.3f}", f"{value['low']:.3f} – {value['high']:.3f}"]
        table.add_row(*cells)
    console.print(table)


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
