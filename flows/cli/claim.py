"""`cursus claim`: train the systems that a claim compares, and record the comparison."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from flows.cli.display import show_detectable_difference, show_plan
from flows.cli.preview import PlanPreview, Previewer
from flows.cli.store_in_use import hold
from pipelines.components import did_you_mean
from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import RecipeError
from pipelines.lineage.store import Store
from pipelines.recipe.claim import Claim
from pipelines.recipe.claims import (
    Measurement,
    claim_of,
    claim_on,
    figure_source,
    measurements,
    recipe_of_claim,
    seeds_of,
)
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from pipelines.recipe.schema import Recipe
from tasks.datasets.planning import Request, recipes_for, resolve_request, setting_of_dataset, store_folder
from tasks.datasets.prepared import open_prepared
from tasks.records.claims import PAGE, record_claim
from tasks.records.measured_claim import MeasuredClaim, MeasuredPart
from tasks.records.systems import write_page
from tasks.servers.environment import prepare_environment


def measure(
    root: Path,
    console: Console,
    name: str,
    data: Sequence[str] = (),
    variants: Sequence[str] = (),
    seeds: int | None = None,
    smoke: bool = False,
    threads: int | None = None,
    dry_run: bool = False,
) -> None:
    """Train missing models, compare them, and print the result; a measurement at full size is also recorded.

    `data` replaces the claim's datasets: a name, or `role=name` for a claim about several. With `dry_run`, only the
    plans are printed. Raises RecipeError for an unknown claim, for a dataset that is not in params.yaml, and where no
    judge records the claim's figure on it.
    """
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    prepare_environment(root)
    owner, _, label = name.partition("/")
    stated = Library(RecipeFolders.of_project(root)).load(owner)
    if not label:
        for known, claim in stated.claims.items():
            console.print(f"{owner}/{known}   {claim.says}   on {', '.join(claim.datasets)}", soft_wrap=True)
        return
    claim = claim_on(claim_of(stated, label), data)
    _check_datasets(root, name, claim)
    dataset = claim.dataset(claim.form.sides()[0].trained)
    recipe = recipes_for(root, dataset).load(owner, tuple(variants) or None)
    parts = dict.fromkeys(measurements(recipe, claim).values())
    store = Store(store_folder(root))
    hold(store)
    measured: dict[Measurement, MeasuredPart] = {}
    for part in parts:
        _check_part(root, recipe, label, part)
        preview = _measure_part(root, console, owner, label, part, store, variants, seeds, smoke, threads, dry_run)
        measured[part] = MeasuredPart(
            preview.plan,
            preview.prepared,
            preview.prepared if part.judged == part.trained else open_prepared(part.judged, root),
        )
    if dry_run:
        return
    if smoke:
        console.print("every step ran; a smoke run measures nothing, so it is not recorded")
        return
    record = record_claim(root, MeasuredClaim(recipe, label, claim, measured, store), variants)
    show_record(console, record)
    console.print(f"recorded  {root / PAGE}", soft_wrap=True)
    write_page(root)


def _check_datasets(root: Path, name: str, claim: Claim) -> None:
    known = load_settings(root)
    for dataset in claim.datasets:
        if dataset not in known:
            raise RecipeError(
                f"claim {name} is measured on the dataset {dataset!r}, which is not in params.yaml: add it "
                f"(docs/data.md shows how), or choose another with --data.{did_you_mean(dataset, known)}"
            )


def _check_part(root: Path, recipe: Recipe, label: str, part: Measurement) -> None:
    """Whether the figure is recorded on the data of a part, and, of a transfer, whether its task is the same."""
    trained, judged = (setting_of_dataset(root, one) for one in (part.trained, part.judged))
    if part.task and trained.family != judged.family:
        raise RecipeError(
            f"claim {recipe.name}/{label} judges on {part.judged!r} ({judged.family}) what it trains on "
            f"{part.trained!r} ({trained.family}): choose datasets of one task family with --data"
        )
    figure_source(recipe, label, judged, part.stages)


def _request(
    root: Path, owner: str, label: str, part: Measurement, variants: Sequence[str], seeds: int | None, smoke: bool
) -> Request:
    request = resolve_request(root, part.trained, owner, tuple(variants), smoke)
    transform = partial(recipe_of_claim, name=label, seeds=seeds, stages=part.stages)
    judged_on = part.judged if part.judged != part.trained else None
    return replace(request, transform=transform, judged_on=judged_on)


def _measure_part(
    root: Path,
    console: Console,
    owner: str,
    label: str,
    part: Measurement,
    store: Store,
    variants: Sequence[str],
    seeds: int | None,
    smoke: bool,
    threads: int | None,
    dry_run: bool,
) -> PlanPreview:
    """Compute a part of a claim, unless it is a dry run; the plan as it was computed."""
    request = _request(root, owner, label, part, variants, seeds, smoke)
    on = part.trained if request.judged_on is None else f"{part.trained}, judged on {part.judged}"
    console.print(f"{owner} on {on}: preparing the data")
    previewer = Previewer(root, request, store, console.print)
    preview = previewer.before(only=dry_run)
    source = figure_source(preview.plan.recipe, label, setting_of_dataset(root, part.judged), part.stages)
    if part.task and not source.figure.unit:
        judged = preview.prepared if request.judged_on is None else open_prepared(part.judged, root)
        show_detectable_difference(console, judged, seeds_of(preview.plan.recipe.claims[label], source, seeds))
    if dry_run:
        show_plan(console, root, preview.plan, preview.prepared, preview.stored, store, threads)
        return preview
    if preview.todo:
        console.print(
            f"{len(preview.todo)} of {len(preview.plan.steps)} steps to compute; starting Prefect, MLflow and torch …"
        )
        from flows.process.execute import execute

        execute(
            {
                "dataset": part.trained,
                "recipe": owner,
                "variants": list(variants),
                "smoke": smoke,
                "threads": threads,
                "claim": label,
                "compared": list(part.stages),
                "judged_on": request.judged_on,
                "seeds": seeds,
            },
            root,
        )
        preview = previewer.after(preview)
    return preview


def show_record(console: Console, record: Mapping[str, Any]) -> None:
    """Print what was measured of each side, every effect, and the verdict."""
    from tasks.records.claims_page import effect, figure_name, number

    if "effect" in record:
        metric, difference = record["metric"], record["effect"]
        for side in ("baseline", "system"):
            score = record[side][metric]
            interval = f"[{score['low']:.3f}, {score['high']:.3f}]"
            console.print(f"{side:<9} {record[side]['stage']:<20} {metric} {score['mean']:.3f} {interval}")
        interval = f"[{difference['low']:+.3f}, {difference['high']:+.3f}]"
        console.print(f"effect    {difference['difference']:+.3f} {interval}   {record['verdict']}", markup=False)
    else:
        for side in record["sides"]:
            figure = side["figure"]
            interval = f"[{number(figure['low'], record)}, {number(figure['high'], record)}]"
            measured = "" if record["exact"] else f" {interval}"
            on = f" on {side['judged']}" if "several" in record["data"] else ""
            line = (
                f"measured  {side['stage'] + on:<28} {figure_name(record)} {number(figure['mean'], record)}{measured}"
            )
            console.print(line, markup=False, soft_wrap=True)
        for contrast in record["contrasts"]:
            line = f"effect    {contrast['label']}: {effect(contrast, record)}   {contrast['verdict']}"
            console.print(line, markup=False, soft_wrap=True)
        console.print(f"verdict   {record['verdict']}")
    console.print(f"published {record['published']}", soft_wrap=True)
