"""Estimated duration of a dry run, compared with the duration of the run: every recipe, twice."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from ruamel.yaml import YAML

from benchmarks.checkouts import ROOT, checkout, cursus
from benchmarks.harness.benchmark import Benchmark, Setting
from benchmarks.harness.record import Figure, Goal, Measured
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.lineage.store import Store
from pipelines.recipe.load import Library
from tasks.datasets.planning import make_plan, resolve_request, store_folder
from tasks.datasets.prepared import open_prepared
from tasks.estimates.duration import RunEstimate, estimate_run
from tasks.estimates.machine_speed import slowness

USUAL_DATA = "docstrings"
TEXT = {"general": 6_000_000, "domain": 3_000_000}
"""Bytes of each table: enough for the reduced budgets, prepared in seconds."""
REDUCED = 20
"""Divisor of a recipe's tokens."""
FEWEST = 100_000
"""Smallest budget, in tokens, that is reduced."""
EPOCHS = 2
KNOWN, UNKNOWN = "with history", "nothing known"
LARGEST, MIDDLE = "largest error of a recipe's estimate", "middle error of the recipes' estimates"


class Estimates(Benchmark):
    """The first run of a recipe is its smoke profile: seconds per stage, mostly start-up. The second is the recipe at
    its own size; it is estimated both from the records in the store (the recipe's smoke run, and earlier recipes) and
    without any. If a recipe continues another's stages, those are in the store."""

    name = "estimates"
    what = (
        "Duration estimated by `cursus run --dry-run`, compared with the wall-clock seconds of the `cursus run` that "
        f"follows, for every recipe on documentation strings, at its own size with a {REDUCED}th of its tokens, "
        f"{EPOCHS} epochs and one seed, after its smoke profile. An error is the difference relative to the run's "
        "duration; with nothing known, the estimate does not use the store's records."
    )
    slow = True
    goals: ClassVar[tuple[Goal, ...]] = (
        Goal(figure=f"{LARGEST}, {KNOWN}", at_most=30, unit="%"),
        Goal(figure=f"{MIDDLE}, {UNKNOWN}", at_most=30, unit="%"),
    )

    def measure(self, setting: Setting) -> Measured:
        folder = checkout(with_data=False)
        try:
            return suite(folder, setting)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Case:
    """One run of a recipe."""

    recipe: str
    data: str
    smoke: bool

    @property
    def words(self) -> list[str]:
        return ["run", self.recipe, "--data", self.data, *(["--smoke"] if self.smoke else [])]

    @property
    def what(self) -> str:
        return f"{self.recipe}{' --smoke' if self.smoke else ''}"


def suite(folder: Path, setting: Setting) -> Measured:
    """Measure every recipe in the checkout at `folder`."""
    recipes, notes = write_suite(folder)
    chosen = dict(list(recipes.items())[: 1 if setting.quick else None])
    for data in dict.fromkeys(chosen.values()):
        cursus(folder, "data", data)
    figures: list[Figure] = []
    errors: dict[str, list[float]] = {KNOWN: [], UNKNOWN: []}
    for recipe, data in chosen.items():
        for smoke in (True, False):
            case = Case(recipe, data, smoke)
            estimated = {KNOWN: guessed(folder, case, setting, True), UNKNOWN: guessed(folder, case, setting, False)}
            try:
                took = cursus(folder, *case.words, "--threads", str(setting.threads))
            except subprocess.CalledProcessError:
                notes.append(f"{case.what} did not run")
                continue
            figures.append(Figure(name=f"{case.what} took", value=took, unit="s"))
            for name, guess in estimated.items():
                figures.append(
                    Figure(
                        name=f"{case.what}, estimated {name}",
                        value=guess.seconds,
                        unit="s",
                        low=guess.seconds / guess.off_by,
                        high=guess.seconds * guess.off_by,
                    )
                )
                if not smoke:
                    errors[name].append(100 * abs(guess.seconds - took) / took)
    summary = [
        Figure(name=f"{what}, {name}", value=of(values), unit="%")
        for name, values in errors.items()
        if values
        for what, of in ((LARGEST, max), (MIDDLE, median))
    ]
    return Measured(figures=(*summary, *figures), notes=tuple(notes))


def guessed(folder: Path, case: Case, setting: Setting, known: bool) -> RunEstimate:
    """The estimate of a dry run now; `known` False hides the store's records from it."""
    slowness.cache_clear()
    prepared = open_prepared(case.data, folder)
    plan = make_plan(folder, resolve_request(folder, case.data, case.recipe, (), case.smoke), prepared)
    store = Store(store_folder(folder))
    stored = {step.fingerprint for step in plan.steps if store.get(step.fingerprint)}
    return estimate_run(folder, plan, prepared, stored, list(store.all()) if known else [], setting.threads)


def write_suite(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Write text, datasets and reduced recipes. Returns the dataset of each recipe, those first that others continue,
    and notes on recipes that are left out."""
    (folder / "texts").mkdir()
    for table, size in TEXT.items():
        with (folder / "texts" / f"{table}.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(lines(table, size))
    library = Library(ROOT / "recipes")
    recipes: dict[str, str] = {}
    notes: list[str] = []
    params: dict[str, Any] = YAML(typ="safe").load((ROOT / "params.yaml").read_text(encoding="utf-8"))
    for path in sorted((ROOT / "recipes").glob("*.yaml")):
        claims = library.load(path.stem).claims.values()
        datasets = sorted({data for claim in claims for data in claim.datasets} or {USUAL_DATA})
        data = USUAL_DATA if USUAL_DATA in datasets else datasets[0]
        if params["datasets"][data].get("language", "en") != "en":
            notes.append(f"{path.stem} is left out: its data is not in this suite's language")
        else:
            recipes[path.stem] = data
    for data in recipes.values():
        params["datasets"][data] |= {table: [f"texts/{table}.jsonl"] for table in TEXT}
    params["datasets"] = {data: params["datasets"][data] for data in dict.fromkeys(recipes.values())}
    with (folder / "params.yaml").open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(params, file)
    for path in (folder / "recipes").glob("*.yaml"):
        path.write_text(reduced(path.read_text(encoding="utf-8")), encoding="utf-8")
    first = dict(sorted(recipes.items(), key=lambda item: item[0] != "regime"))
    return first, notes


def lines(table: str, size: int) -> Iterator[str]:
    """`size` bytes of documentation strings, as JSON lines."""
    for text, _ in documentation(table):
        line = json.dumps({"text": text}) + "\n"
        yield line
        size -= len(line)
        if size < 0:
            return


def reduced(recipe: str) -> str:
    """The recipe's YAML with reduced budgets."""

    def fewer(match: re.Match[str]) -> str:
        tokens = int(match[1])
        return f"tokens: {tokens // REDUCED if tokens >= FEWEST else tokens}"

    less = re.sub(r"\btokens: (\d+)", fewer, re.sub(r"\bseeds: \[.*\]", "seeds: [0]", recipe))
    return re.sub(r"\bepochs: (\d+)", lambda match: f"epochs: {min(EPOCHS, int(match[1]))}", less)
