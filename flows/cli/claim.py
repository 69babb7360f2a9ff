"""`cursus claim`: train the systems that a claim compares, and record the comparison."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from flows.cli.display import show_plan
from flows.cli.preview import PlanPreview, Previewer
from flows.cli.store_in_use import hold
from pipelines.lineage.store import Store
from pipelines.messages.translation import message, translatable
from pipelines.recipe.claims import Measurement, figure_source, seeds_of
from pipelines.recipe.folders import RecipeFolders
from pipelines.recipe.load import Library
from pipelines.task_families.labelled_tables import labelled_table
from tasks.datasets.claim_requests import ClaimRequest
from tasks.datasets.libraries import setting_of_dataset
from tasks.datasets.planning import store_folder
from tasks.datasets.prepared import open_prepared
from tasks.records.claim_power import expected_power, power_text
from tasks.records.claims import PAGE, RECORDS, record_claim
from tasks.records.measured_claim import MeasuredClaim, MeasuredPart
from tasks.records.measurements import read_records
from tasks.records.systems import write_page
from tasks.records.tuning import Tuning
from tasks.servers.environment import prepare_environment
from tasks.stages.code import code_of


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
    draws: int | None = None,
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
            on = message("on {corpora}", corpora=", ".join(claim.datasets))
            console.print(f"{owner}/{known}   {claim.says}   {on}", soft_wrap=True)
        return
    requested = ClaimRequest.resolve(root, name, data, variants, seeds, smoke, draws)
    store = Store(store_folder(root))
    hold(store)
    searches = {part: _search(root, console, requested, part, store, dry_run) for part in requested.parts}
    tunings: dict[Measurement, Tuning] = {}
    for part, search in searches.items():
        if search is not None and not search.todo:
            tunings[part] = Tuning.of(requested, part, search.plan, store)
            requested = requested.chosen(part, tunings[part].chosen)
    previews = {part: _preview(root, console, requested, part, store, dry_run) for part in requested.parts}
    shown = [one for part, preview in previews.items() for one in (searches[part], preview) if one is not None]
    if dry_run:
        for preview in shown:
            show_plan(console, root, preview.plan, preview.prepared, preview.stored, store, threads)
        return
    todo = sum(len(preview.todo) for preview in shown)
    record = None
    if todo:
        steps = sum(len(preview.plan.steps) for preview in shown)
        line = "{todo} of {steps} steps to compute; starting Prefect, MLflow and torch …"
        console.print(message(line, todo=todo, steps=steps))
        from flows.process.execute import execute

        config = {"claim": name, "data": list(data), "variants": list(variants), "seeds": seeds, "draws": draws}
        record = execute({**config, "smoke": smoke, "threads": threads}, root, "claim")["record"]
    if smoke:
        console.print(message("every step ran; a smoke run measures nothing, so it is not recorded"))
        return
    if record is None:
        measured = {part: _measured(root, part, preview, tunings.get(part)) for part, preview in previews.items()}
        finished = MeasuredClaim(requested.recipe, requested.label, requested.claim, measured, store)
        record = record_claim(root, finished, variants, code_of(root))
        write_page(root)
    show_record(console, record)
    console.print(message("recorded  {path}", path=root / PAGE), soft_wrap=True)


def _preview(
    root: Path, console: Console, requested: ClaimRequest, part: Measurement, store: Store, dry_run: bool
) -> PlanPreview:
    """The plan of a part of a claim; the smallest effect that it would show is printed beside the published one."""
    request = requested.of_part(root, part)
    on = part.trained
    if request.judged_on is not None:
        on = message("{dataset}, judged on {judged}", dataset=part.trained, judged=part.judged)
    console.print(message("{recipe} on {dataset}: preparing the data", recipe=requested.recipe.name, dataset=on))
    preview = Previewer(root, request, store, console.print).before(only=dry_run)
    recipe, label = preview.plan.recipe, requested.label
    source = figure_source(recipe, label, setting_of_dataset(root, part.judged), part.stages)
    from pyarrow import parquet

    claim = recipe.claims[label]
    judged = preview.prepared if request.judged_on is None else open_prepared(part.judged, root)
    test = judged.tables.get(labelled_table(part.task, "test")) if part.task else None
    items = None if test is None else parquet.read_metadata(test).num_rows
    seeds, draws = seeds_of(claim, source, requested.seeds), requested.draws or claim.draws
    power = expected_power(claim, source.figure, items, seeds, draws, read_records(root / RECORDS))
    for line in power_text(power, claim.form, source.figure, claim.published):
        console.print(line, markup=False, soft_wrap=True)
    return preview


def _search(
    root: Path, console: Console, requested: ClaimRequest, part: Measurement, store: Store, dry_run: bool
) -> PlanPreview | None:
    """The plan of the search over the claim's grid; None for a claim without one. Until it has been computed, the
    measurement is planned with the settings of the recipe."""
    if not requested.claim.tune:
        return None
    return Previewer(root, requested.grid(root, part), store, console.print).before(only=dry_run)


def _measured(root: Path, part: Measurement, preview: PlanPreview, tuning: Tuning | None) -> MeasuredPart:
    judged = preview.prepared if part.judged == part.trained else open_prepared(part.judged, root)
    return MeasuredPart(preview.plan, preview.prepared, judged, tuning)


SIDES = {"baseline": translatable("baseline"), "system": translatable("system")}
"""Side of a claim → how it is shown."""


def show_record(console: Console, record: Mapping[str, Any]) -> None:
    """Print what was measured of each side, every effect, and the verdict."""
    from pipelines.reports.elements.wording import plain
    from tasks.records.claims_page import baselines_text, effect, figure_name, number
    from tasks.records.fairness import fairness_text

    if "effect" in record:
        metric, difference = record["metric"], record["effect"]
        for side in ("baseline", "system"):
            score = record[side][metric]
            interval = f"[{score['low']:.3f}, {score['high']:.3f}]"
            console.print(
                f"{message(SIDES[side]):<9} {record[side]['stage']:<20} {metric} {score['mean']:.3f} {interval}"
            )
        interval = f"[{difference['low']:+.3f}, {difference['high']:+.3f}]"
        effected = f"{difference['difference']:+.3f} {interval}   {plain(record['verdict'])}"
        console.print(message("effect    {effect}", effect=effected), markup=False)
    else:
        for side in record["sides"]:
            figure = side["figure"]
            interval = f"[{number(figure['low'], record)}, {number(figure['high'], record)}]"
            measured = "" if record["exact"] else f" {interval}"
            on = message(" on {dataset}", dataset=side["judged"]) if "several" in record["data"] else ""
            figured = f"{side['stage'] + on:<28} {figure_name(record)} {number(figure['mean'], record)}{measured}"
            console.print(message("measured  {figure}", figure=figured), markup=False, soft_wrap=True)
        for contrast in record["contrasts"]:
            effected = f"{contrast['label']}: {effect(contrast, record)}   {plain(contrast['verdict'])}"
            console.print(message("effect    {effect}", effect=effected), markup=False, soft_wrap=True)
        console.print(message("verdict   {verdict}", verdict=plain(record["verdict"])))
    if without := baselines_text(record):
        console.print(message("baselines {scores}", scores=without), markup=False, soft_wrap=True)
    console.print(message("sides     {conditions}", conditions=fairness_text(record)), markup=False, soft_wrap=True)
    console.print(message("published {figure}", figure=record["published"]), markup=False, soft_wrap=True)
