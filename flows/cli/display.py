"""Terminal output of the commands: recipes, plans and scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipelines.messages.translation import message

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.lineage.store import Store
    from pipelines.recipe.plan import Plan
    from pipelines.recipe.schema import Recipe, Stage
    from pipelines.reports.score_tables import ScoreTable
    from tasks.datasets.prepared import Prepared


def show_recipe(console: Console, recipe: Recipe) -> None:
    """Print one line per stage: its parts, corpus, start and budget."""
    from pipelines.recipe.lines import line_views

    console.print(f"{recipe.name} {recipe.paper}", style="bold")
    if recipe.systems:
        line = message("  implements (cursus systems): {systems}", systems=", ".join(recipe.systems))
        console.print(line, soft_wrap=True)
    for key, value in recipe.settings.items():
        console.print(message("  in the paper, {key}: {value}", key=key, value=value), soft_wrap=True)
    names, kinds = max(map(len, recipe.stages)), max(len(stage.kind) for stage in recipe.stages.values())
    for name, stage in recipe.stages.items():
        views = line_views(stage).values()
        words = (
            [one.name for view in views for one in view.objective]
            or [one.name for one in stage.suite]
            or [one.name for one in stage.compression]
            or ([stage.estimate.name] if stage.estimate is not None else [])
        )
        corpora = dict.fromkeys(word for view in views for word in view.corpus)
        parts = [
            f"{name:<{names}}  {stage.kind:<{kinds}}  {', '.join(dict.fromkeys(words))}",
            message("on {corpora}", corpora=message(" and ").join(corpora)),
            _start(stage),
        ]
        if stage.trains:
            parts.append(
                message("{tokens:,} tokens", tokens=stage.budget.tokens)
                if stage.budget.tokens
                else message("{epochs:g} epochs", epochs=stage.budget.epochs)
            )
        console.print(" · ".join(parts), soft_wrap=True)


def show_plan(
    console: Console, root: Path, plan: Plan, prepared: Prepared, stored: set[str], store: Store, threads: int | None
) -> None:
    """Print a table of steps: fingerprints, which are in the store, and the time that the rest would take on `threads`
    cores."""
    from tasks.estimates.duration import estimate_run

    columns = [message(one) for one in ("step", "kind", "fingerprint", "store", "tokens", "minutes")]
    table = Table(*columns, title=message("plan of {recipe}", recipe=plan.recipe.name), title_justify="left")
    todo = {step.fingerprint for step in plan.missing(stored)}
    estimated = estimate_run(root, plan, prepared, stored, list(store.all()), threads)
    for step in plan.steps:
        estimate, needed = estimated.steps[step.fingerprint], step.fingerprint in todo
        state = message("to compute" if needed else "cached")
        tokens = f"{estimate.tokens / 1e6:.2f}M" if estimate.tokens else ""
        minutes = f"{estimate.seconds / 60:.1f}" if needed else ""
        table.add_row(step.label, step.stage.kind, step.fingerprint[:12], state, tokens, minutes)
    console.print(table)
    console.print(
        message(
            "{todo} of {steps} steps to compute, {estimate}",
            todo=len(todo),
            steps=len(plan.steps),
            estimate=estimated.text,
        )
    )


def compared_seeds(plan: Plan) -> int | None:
    """Smallest number of seeds among the stages that `plan`'s evaluate stages compare; None when nothing is
    compared."""
    fewest: list[int] = []
    for judging in plan.steps:
        named = {name for one in judging.stage.suite for name in one.subjects}
        seeds = [sum(step.name == name for step in plan.steps) for name in named]
        fewest += [min(seeds)] if len(named) > 1 else []
    return max(1, min(fewest)) if fewest else None


def show_detectable_difference(console: Console, prepared: Prepared, seeds: int) -> None:
    """Print, before anything is computed, the smallest difference between two stages that the test set can detect."""
    from pipelines.judging.certainty.significance import DISAGREEMENT, SEED_DEVIATION, minimum_detectable_difference

    items = prepared.summary["tables"]["test"]["documents"]
    console.print(
        message(
            "{items:,} test examples with {seeds} seed{s} per side detect a difference of {difference:.1f} points with "
            "80 % power (assuming that the two disagree on {disagreement:.0%} of the examples, and a deviation of "
            "{deviation:g} point between seeds)",
            items=items,
            seeds=seeds,
            s="s" if seeds > 1 else "",
            difference=100 * minimum_detectable_difference(items, seeds),
            disagreement=DISAGREEMENT,
            deviation=100 * SEED_DEVIATION,
        ),
        soft_wrap=True,
    )


def show_left_out(console: Console, prepared: Prepared) -> None:
    """Print which labelled examples the preparation dropped: scores are about those that are left."""
    from tasks.datasets.left_out import left_out

    for line in left_out(prepared.summary, labelled=True):
        console.print(line, markup=False, soft_wrap=True)


def show_scores(console: Console, tables: Iterable[ScoreTable]) -> None:
    """Print the scores of evaluate stages."""
    from pipelines.reports.elements.wording import metric_name

    for scores in tables:
        title = message(
            "{stage}: answers to prompts with 95 % intervals, {examples} examples{task}"
            if scores.prompted
            else "{stage}: test scores with 95 % intervals, {examples} examples{task}",
            stage=scores.stage,
            examples=scores.record["examples"],
            task=message(" of {task}", task=scores.task) if scores.task else "",
        )
        table = Table(message("model"), *map(metric_name, scores.metrics), title=Text(title), title_justify="left")
        for row in scores.rows:
            cells = [_estimate(row.scores[metric]) if metric in row.scores else "" for metric in scores.metrics]
            table.add_row(Text(row.title), *map(Text, cells))
        console.print(table)


def show_warning(console: Console, store: Store, plan: Plan, models: Mapping[str, str]) -> None:
    """Print why the final model of `plan` is not surely above its baselines, if it is not and `models` were
    registered."""
    from pipelines.recipe.final_models import lineage_steps
    from tasks.stages.sanity import registration_warning

    if models and (warning := registration_warning(store.root, lineage_steps(plan))) is not None:
        line = message("warning  {reason}; it is registered as @candidate with the tag cursus.warning", reason=warning)
        console.print(Text(line, style="yellow"), soft_wrap=True)


def _estimate(score: Mapping[str, Any]) -> str:
    return f"{score['mean']:.3f} {score['low']:.3f}–{score['high']:.3f}"


def next_commands(plan: Plan, models: Mapping[str, str]) -> list[str]:
    """The next commands for the results of `plan`; `models` are those that this run registered."""
    from pipelines.recipe.final_models import final_model, lineage_steps
    from pipelines.task_families.labelled_tables import tasks_in

    final = final_model(lineage_steps(plan))
    known = next(iter(models), final.stage if final else plan.steps[-1].name)
    commands = ["cursus up", f"cursus lineage {known}"]
    if final is not None:
        step = next(step for step in plan.steps if step.fingerprint == final.fingerprint)
        tasks = tasks_in(step.data)
        line = next((name for name, line in step.stage.lines.items() if line.corpus == (tasks[0],)), None)
        task = f" --task {line}" if line is not None and len(tasks) > 1 else ""
        family = step.families.get(tasks[0], step.family) if tasks else step.family
        given = "'a text'" if family.is_single_text else "--json < examples.jsonl"
        commands.append(f"cursus predict{task} {given}")
    return commands


def show_next(console: Console, commands: Iterable[str]) -> None:
    """Print the next commands."""
    console.print(message("next     {commands}", commands="   ·   ".join(commands)), soft_wrap=True)


def _start(stage: Stage) -> str:
    start = stage.start
    if start is None:
        return message("from nothing")
    if isinstance(start, tuple):
        return message("from {stages}", stages=", ".join(start))
    if isinstance(start, str):
        if stage.head_start is not None:
            return message("from {stage}, its head from {other}", stage=start, other=stage.head_start)
        return message("from {stages}", stages=start)
    if hasattr(start, "untrained"):
        return message("from random weights shaped like {checkpoint}", checkpoint=start.untrained)
    return message("from {stages}", stages=start.checkpoint)
