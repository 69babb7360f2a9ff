"""The map of systems: docs/systems.md, made of recipes/systems.yaml, the recipes and the records of measurements.

python -m tasks.records.systems            # writes docs/systems.md, and the list of recipes in README
python -m tasks.records.systems --print    # prints it instead
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.lineage.disk import write_text_atomically
from pipelines.messages.translation import message, translatable
from pipelines.recipe.load import Library
from pipelines.recipe.systems import (
    SYSTEMS,
    Implementation,
    PublishedSystem,
    implementations,
    known_systems,
    read_systems,
)
from pipelines.reports.elements.axes import count
from pipelines.reports.elements.wording import difference, plain
from tasks.environment import project_root
from tasks.records import claims, lattices
from tasks.records.claims_page import dataset_names, effects, figure_name
from tasks.records.explanations import read_explanations
from tasks.records.measurements import effect_text, named_records, read_records
from tasks.records.plans import read_plans
from tasks.records.readme_recipes import write_recipes

RECIPES = Path("recipes")
PAGE = Path("docs/systems.md")
NO_RECIPE = translatable("no recipe yet")
NOT_MEASURED = translatable("not measured")
COLUMNS = ("system", "to show", "recipe", "data", "claim", "verdict", "effect [95 %]", "cost")
_PAPER = re.compile(r"(arXiv|doi):([^\s,;]+)")
_ADDRESSES = {"arXiv": "https://arxiv.org/abs/", "doi": "https://doi.org/"}


@dataclass(frozen=True)
class SystemResult:
    """What was measured of one claim about a system on one dataset, as words."""

    claim: str
    """Name of the recipe's claim; empty for an effect in a lattice, and where there is no claim."""
    statement: str
    data: str
    verdict: str = NOT_MEASURED
    effect: str = ""
    cost: str = ""
    page: str = ""
    """Page of docs/ that has the whole record; empty where there is none."""
    why: str = ""
    """Why it was not reproduced, where somebody has found out."""


@dataclass(frozen=True)
class MappedSystem:
    """A system with its implementations, and the results of each."""

    system: PublishedSystem
    section: str
    implementations: tuple[tuple[Implementation, tuple[SystemResult, ...]], ...]
    plan: str = ""
    """How it would be built, where there is a plan."""

    @property
    def origin(self) -> str:
        """Paper and year; the year once where the paper is given as author and year."""
        paper, year = self.system.paper, str(self.system.year or "")
        return paper if year in _PAPER.sub("", paper) else ", ".join(one for one in (paper, year) if one)

    @property
    def recipes(self) -> str:
        """Names of its recipes; `no recipe yet` where it has none."""
        return ", ".join(one.recipe.name for one, _ in self.implementations) or message(NO_RECIPE)

    @property
    def verdict(self) -> str:
        """Verdicts of its claims, each with its number where there are several; empty without a recipe."""
        verdicts = [result.verdict for _, results in self.implementations for result in results]
        measured = Counter(one for one in verdicts if one != NOT_MEASURED)
        if sum(measured.values()) > 1:
            return ", ".join(f"{number} {plain(verdict)}" for verdict, number in measured.items())
        return plain(next(iter(measured), NOT_MEASURED if verdicts else ""))


def main() -> None:
    """Write the page; with `--print`, print it."""
    if "--print" in sys.argv[1:]:
        print(render_page(project_root()), end="")
        return
    write_page(project_root())


def write_page(root: Path) -> None:
    """Write docs/systems.md and the recipes in README of the project in `root`; nothing where it has no list."""
    if known_systems(root / RECIPES):
        (root / PAGE).parent.mkdir(exist_ok=True)
        write_text_atomically(root / PAGE, render_page(root))
        write_recipes(root)


def mapped_systems(root: Path) -> list[MappedSystem]:
    """Every system of the project in `root`, in the order of its list."""
    library = Library(root / RECIPES)
    implemented = implementations(library.load(name) for name in library.names())
    claimed, measured = named_records(root / claims.RECORDS), read_records(root / lattices.RECORDS)
    explained = read_explanations(root / claims.RECORDS)
    plans = read_plans(root)
    return [
        MappedSystem(
            system,
            section,
            tuple((one, tuple(_results(one, claimed, explained, measured))) for one in implemented.get(system.id, ())),
            plans.line(system.id) if system.id in plans.rows else "",
        )
        for section, systems in read_systems(root / RECIPES).items()
        for system in systems
    ]


def render_page(root: Path) -> str:
    """The text of docs/systems.md."""
    mapped = mapped_systems(root)
    implemented = [one for one in mapped if one.implementations]
    measured = [one for one in implemented if one.verdict != NOT_MEASURED]
    lines = [
        "# Systems",
        "",
        f"Written by `python -m tasks.records.systems` from `recipes/{SYSTEMS}`, the recipes and the records of",
        "measurements: do not edit.",
        "",
        f"**{len(implemented)} of {len(mapped)} systems have a recipe; a claim was measured for {len(measured)} of "
        "these.**",
        "",
        "A recipe is of a system only where it has every defining part of it. The stages after a recipe's name are the",
        "system. Effects are those of [claims.md](claims.md) and, where a stage before fine-tuning is the system, of",
        "[lattices.md](lattices.md), which also explain the verdicts. The cost is that of the whole measurement, and",
        "the tokens are those that the compared stages read.",
        "`cursus systems` prints this list, `cursus systems electra` one entry. The plan of a system without a recipe",
        "is the axes that it uses and its new files below `pipelines/`; what each of them does is in",
        "[decision 53](decisions/0053-every-remaining-row.md).",
    ]
    sections: dict[str, list[MappedSystem]] = {}
    for one in mapped:
        sections.setdefault(one.section, []).append(one)
    for section, systems in sections.items():
        having = sum(bool(one.implementations) for one in systems)
        lines += ["", f"## {section}", "", f"{having} of {len(systems)} have a recipe.", ""]
        lines += ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
        for one in systems:
            lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in _rows(one)]
    return "\n".join(lines) + "\n"


def _rows(mapped: MappedSystem) -> Iterator[list[str]]:
    """Cells of a system's rows, one row per result; what a row shares with the one above is left empty."""
    system = mapped.system
    name = f"**{system.id}**: {system.title}"
    head = [f"{name} ({_linked(mapped.origin)})" if mapped.origin else name, system.shows]
    if not mapped.implementations:
        plan = f" (plan: {mapped.plan})" if mapped.plan else ""
        yield [*head, NO_RECIPE + plan, "", "", "", "", ""]
    for one, results in mapped.implementations:
        recipe = f"[{one.recipe.name}](../{RECIPES}/{one.recipe.name}.yaml) · {', '.join(one.stages)}"
        for result in results:
            verdict = f"[**{result.verdict}**]({result.page})" if result.page else result.verdict
            claim = f"{result.claim}: {result.statement}" if result.claim else result.statement
            yield [*head, recipe, result.data, claim, verdict, result.effect, result.cost]
            head, recipe = ["", ""], ""


def _linked(paper: str) -> str:
    return _PAPER.sub(lambda match: f"[{match[0]}]({_ADDRESSES[match[1]]}{match[2]})", paper)


def _results(
    implementation: Implementation,
    claimed: Mapping[str, Mapping[str, Any]],
    explained: Mapping[str, str],
    measured: Sequence[Mapping[str, Any]],
) -> Iterator[SystemResult]:
    """Results of an implementation: its claims, measured or not, then the effects of its stages in lattices."""
    recipe, empty = implementation.recipe, True
    for name in implementation.claims:
        claim = recipe.claims[name]
        records = {key: one for key, one in claimed.items() if (one["recipe"], one["claim"]) == (recipe.name, name)}
        for key, record in records.items():
            yield _of_claim(record, explained.get(key, ""))
        if not records:
            yield SystemResult(name, claim.says, ", ".join(claim.datasets))
        empty = False
    for record in measured:
        for effect in record["measured"]["effects"]:
            if record["recipe"] == recipe.name and len(effect["of"]) == 1 and effect["of"][0] in implementation.stages:
                yield _of_lattice(record, effect)
                empty = False
    if empty:
        yield SystemResult("", "no claim yet", "")


def _of_claim(record: Mapping[str, Any], why: str) -> SystemResult:
    metric, cost = record["metric"], record["cost"]
    if "effect" in record:
        required = f" (required: above {difference(record['at_least'], metric)})" if record["at_least"] else ""
        measured, sides = effect_text(record["effect"], metric) + required, [record["baseline"], record["system"]]
    else:
        measured, sides = f"{figure_name(record)}: {effects(record)}", record["sides"]
    tokens = sum(side.get("tokens", 0) for side in sides)
    return SystemResult(
        record["claim"],
        record["says"],
        dataset_names(record),
        record["verdict"],
        measured,
        f"{cost['seconds'] / 60:.0f} min, {cost['models']} models" + (f", {count(tokens)} tokens" if tokens else ""),
        claims.PAGE.name,
        why,
    )


def _of_lattice(record: Mapping[str, Any], effect: Mapping[str, Any]) -> SystemResult:
    (stage,) = effect["of"]
    cost, stage_cost = record["cost"], record["factor_costs"].get(stage)
    return SystemResult(
        "",
        f"Effect of the stage {stage}: the paths of the lattice with it against those without it.",
        record["data"]["dataset"],
        effect["verdict"],
        effect_text(effect, record["measured"]["metric"]),
        f"{cost['seconds'] / 60:.0f} min, {cost['models']} models"
        + (f", {count(stage_cost['tokens'])} tokens" if stage_cost else ""),
        lattices.PAGE.name,
    )


if __name__ == "__main__":
    main()
