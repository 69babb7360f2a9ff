"""`cursus claim`: train the systems that a claim compares, and record the comparison."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from flows.cli.display import show_detectable_difference
from flows.cli.preview import Previewer
from pipelines.components import did_you_mean
from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import RecipeError
from pipelines.lineage.store import Store
from pipelines.recipe.claims import claim_of, recipe_of_claim
from pipelines.recipe.load import Library
from tasks.datasets.planning import resolve_request, store_folder
from tasks.records.claims import PAGE, record_claim
from tasks.records.systems import write_page
from tasks.servers.environment import prepare_environment


def measure(
    root: Path, console: Console, name: str, dataset: str | None, seeds: int | None, smoke: bool, threads: int | None
) -> None:
    """Train missing models, compare them, and print the result; a measurement at full size is also recorded.

    Raises RecipeError for an unknown claim, or for one whose dataset is not in params.yaml.
    """
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    prepare_environment(root)
    owner, _, name_of_claim = name.partition("/")
    recipe = Library(root / "recipes").load(owner)
    if not name_of_claim:
        for known, claim in recipe.claims.items():
            console.print(f"{owner}/{known}   {claim.says}   on {claim.data}", soft_wrap=True)
        return
    claim = claim_of(recipe, name_of_claim)
    chosen = dataset or claim.data
    known_datasets = load_settings(root)
    if chosen not in known_datasets:
        raise RecipeError(
            f"claim {name} is measured on the dataset {chosen!r}, which is not in params.yaml: add it (docs/data.md "
            f"shows how), or choose another with --data.{did_you_mean(chosen, known_datasets)}"
        )
    request = replace(
        resolve_request(root, chosen, owner, (), smoke),
        transform=partial(recipe_of_claim, name=name_of_claim, seeds=seeds),
    )
    console.print(f"{owner} on {chosen}: preparing the data")
    store = Store(store_folder(root))
    previewer = Previewer(root, request, store, console.print)
    preview = previewer.before()
    show_detectable_difference(console, preview.prepared, seeds or claim.seeds)
    if preview.todo:
        console.print(
            f"{len(preview.todo)} of {len(preview.plan.steps)} steps to compute; starting Prefect, MLflow and torch …"
        )
        from flows.process.execute import execute

        config = {
            "dataset": chosen,
            "recipe": owner,
            "smoke": smoke,
            "threads": threads,
            "claim": name_of_claim,
            "seeds": seeds,
        }
        execute(config, root)
        preview = previewer.after(preview)
    if smoke:
        console.print("every step ran; a smoke run measures nothing, so it is not recorded")
        return
    record = record_claim(root, name_of_claim, preview.plan, store, preview.prepared)
    metric, effect = record["metric"], record["effect"]
    for side in ("baseline", "system"):
        score = record[side][metric]
        interval = f"[{score['low']:.3f}, {score['high']:.3f}]"
        console.print(f"{side:<9} {record[side]['stage']:<20} {metric} {score['mean']:.3f} {interval}")
    interval = f"[{effect['low']:+.3f}, {effect['high']:+.3f}]"
    console.print(f"effect    {effect['difference']:+.3f} {interval}   {record['verdict']}", markup=False)
    console.print(f"published {record['published']}", soft_wrap=True)
    console.print(f"recorded  {root / PAGE}", soft_wrap=True)
    write_page(root)
