"""`cursus claim`: the regime over what a claim compares, then its record."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from flows.cli.display import show_reach
from flows.cli.preview import Looking
from pipelines.components import did_you_mean
from pipelines.corpora.settings.dataset import load_settings
from pipelines.errors import RecipeError
from pipelines.lineage.store import Store
from pipelines.recipe.claims import claim_of, recipe_of_claim
from pipelines.recipe.load import Library
from tasks.datasets.planning import resolve_request, store_folder
from tasks.records.claims import PAGE, record_claim
from tasks.servers.environment import prepare_environment


def measure(
    root: Path, console: Console, name: str, dataset: str | None, seeds: int | None, smoke: bool, threads: int | None
) -> None:
    """Train what is missing, compare, print the result; a measurement at full size is also recorded.

    Raises RecipeError for an unknown claim, or for one whose dataset params.yaml does not have.
    """
    os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_LOGGING_INTERNAL_LEVEL", "CRITICAL")
    prepare_environment(root)
    owner, _, wanted = name.partition("/")
    recipe = Library(root / "recipes").load(owner)
    if not wanted:
        for known, claim in recipe.claims.items():
            console.print(f"{owner}/{known}   {claim.says}   on {claim.data}", soft_wrap=True)
        return
    claim = claim_of(recipe, wanted)
    chosen = dataset or claim.data
    known_datasets = load_settings(root)
    if chosen not in known_datasets:
        raise RecipeError(
            f"claim {name} is measured on the dataset {chosen!r}, which params.yaml does not have: add it (docs/data.md "
            f"shows how), or name another with --data.{did_you_mean(chosen, known_datasets)}"
        )
    request = replace(
        resolve_request(root, chosen, owner, (), smoke), transform=partial(recipe_of_claim, name=wanted, seeds=seeds)
    )
    console.print(f"{owner} on {chosen}: preparing the data")
    store = Store(store_folder(root))
    looking = Looking(root, request, store, console.print)
    looked = looking.before()
    show_reach(console, looked.prepared, seeds or claim.seeds)
    if looked.todo:
        console.print(
            f"{len(looked.todo)} of {len(looked.plan.steps)} steps to compute; starting Prefect, MLflow and torch …"
        )
        from flows.process.execute import execute

        asked = {
            "dataset": chosen,
            "recipe": owner,
            "smoke": smoke,
            "threads": threads,
            "claim": wanted,
            "seeds": seeds,
        }
        execute(asked, root)
        looked = looking.after(looked)
    if smoke:
        console.print("every step ran; a smoke run measures nothing and is not recorded")
        return
    record = record_claim(root, wanted, looked.plan, store, looked.prepared)
    metric, effect = record["metric"], record["effect"]
    for side in ("baseline", "system"):
        score = record[side][metric]
        console.print(
            f"{side:<9} {record[side]['stage']:<20} {metric} {score['mean']:.3f} [{score['low']:.3f}, {score['high']:.3f}]"
        )
    interval = f"[{effect['low']:+.3f}, {effect['high']:+.3f}]"
    console.print(f"effect    {effect['difference']:+.3f} {interval}   {record['verdict']}", markup=False)
    console.print(f"published {record['published']}", soft_wrap=True)
    console.print(f"recorded  {root / PAGE}", soft_wrap=True)
