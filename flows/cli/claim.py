"""`cursus claim`: train the systems that a claim compares, and record the comparison."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from flows.cli.display import show_detectable_difference, show_plan
from flows.cli.preview import PlanPreview, Previewer
from flows.cli.store_in_use import hold
from pipelines.lineage.store import Store
from pipelines.recipe.claims import Measurement, figure_source, seeds_of
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from tasks.datasets.claim_requests import ClaimRequest
from tasks.datasets.planning import setting_of_dataset, store_folder
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
    if not label:
        for known, claim in Library(RecipeFolders.of_project(root)).load(owner).claims.items():
            console.print(f"{owner}/{known}   {claim.says}   on {', '.join(claim.datasets)}", soft_wrap=True)
        return
    requested = ClaimRequest.resolve(root, name, data, variants, seeds, smoke)
    store = Store(store_folder(root))
    hold(store)
    previews = {part: _preview(root, console, requested, part, store, dry_run) for part in requested.parts}
    if dry_run:
        for preview in previews.values():
            show_plan(console, root, preview.plan, preview.prepared, preview.stored, store, threads)
        return
    todo = sum(len(preview.todo) for preview in previews.values())
    record = None
    if todo:
        steps = sum(len(preview.plan.steps) for preview in previews.values())
        console.print(f"{todo} of {steps} steps to compute; starting Prefect, MLflow and torch …")
        from flows.process.execute import execute

        config = {"claim": name, "data": list(data), "variants": list(variants), "seeds": seeds}
        record = execute({**config, "smoke": smoke, "threads": threads}, root, "claim")["record"]
    if smoke:
        console.print("every step ran; a smoke run measures nothing, so it is not recorded")
        return
    if record is None:
        measured = {part: _measured(root, part, preview) for part, preview in previews.items()}
        finished = MeasuredClaim(requested.recipe, requested.label, requested.claim, measured, store)
        record = record_claim(root, finished, variants)
        write_page(root)
    show_record(console, record)
    console.print(f"recorded  {root / PAGE}", soft_wrap=True)


def _preview(
    root: Path, console: Console, requested: ClaimRequest, part: Measurement, store: Store, dry_run: bool
) -> PlanPreview:
    """The plan of a part of a claim; its smallest detectable difference is printed."""
    request = requested.of_part(root, part)
    on = part.trained if request.judged_on is None else f"{part.trained}, judged on {part.judged}"
    console.print(f"{requested.recipe.name} on {on}: preparing the data")
    preview = Previewer(root, request, store, console.print).before(only=dry_run)
    recipe, label = preview.plan.recipe, requested.label
    source = figure_source(recipe, label, setting_of_dataset(root, part.judged), part.stages)
    if part.task and not source.figure.unit:
        judged = preview.prepared if request.judged_on is None else open_prepared(part.judged, root)
        show_detectable_difference(console, judged, seeds_of(recipe.claims[label], source, requested.seeds))
    return preview


def _measured(root: Path, part: Measurement, preview: PlanPreview) -> MeasuredPart:
    judged = preview.prepared if part.judged == part.trained else open_prepared(part.judged, root)
    return MeasuredPart(preview.plan, preview.prepared, judged)


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
