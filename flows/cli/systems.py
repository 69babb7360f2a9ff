"""`cursus systems`: the published systems, the recipe of each, and what was measured of its claims."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Annotated

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console

from flows.cli.exit_status import handle_errors
from pipelines.errors import RecipeError
from pipelines.messages.translation import message
from pipelines.shipped import shipped_folder
from tasks.environment import is_own_project, project_root

if TYPE_CHECKING:
    from tasks.records.systems import MappedSystem, SystemResult

console = Console(highlight=False)
TITLE = 44
"""Characters of a title in the list."""


@handle_errors
def systems(
    row: Annotated[
        str | None, typer.Argument(help="The id of a system, for example electra; all systems when not given.")
    ] = None,
) -> None:
    """List the published systems: the recipe of each, and the verdict on its claim; or show one in full.

    Example: cursus systems electra
    """
    from pipelines.recipe.systems import SYSTEMS, find_system
    from tasks.records.systems import RECIPES, mapped_systems

    root = project_root()
    if not (root / RECIPES / SYSTEMS).exists() and is_own_project(root):
        root = shipped_folder()  # the list, and what was measured, comes with the code
    if not (root / RECIPES / SYSTEMS).exists():
        raise RecipeError(f"this project has no list of systems: {root / RECIPES / SYSTEMS} is missing")
    if row is None:
        _show_all(mapped_systems(root))
        return
    system = find_system(root / RECIPES, row)
    _show_one(next(one for one in mapped_systems(root) if one.system == system))


def _show_all(mapped: list[MappedSystem]) -> None:
    width = max(len(one.system.id) for one in mapped)
    implemented = sum(bool(one.implementations) for one in mapped)
    section = ""
    for one in mapped:
        if one.section != section:
            section = one.section
            _print(_translated(section), style="bold")
        title = shorten(one.system.title, TITLE, placeholder=" …")
        recipes = set_cell_size(one.recipes, 13) if cell_len(one.recipes) < 13 else one.recipes
        _print(f"  {one.system.id:<{width}}  {title:<{TITLE}}  {recipes}  {one.verdict}".rstrip())
    line = "{implemented} of {total} systems have a recipe; the whole map is docs/systems.md"
    _print(message(line, implemented=implemented, total=len(mapped)))


def _show_one(mapped: MappedSystem) -> None:
    system = mapped.system
    _print(system.id, style="bold")
    lines = [
        ("title", system.title),
        ("paper", mapped.origin),
        ("section", _translated(mapped.section)),
        ("to show", system.shows),
    ]
    if not mapped.implementations:
        lines += [("recipe", mapped.recipes), ("plan", mapped.plan)]
    for one, results in mapped.implementations:
        line = "{recipe}, stages {stages}" if len(one.stages) > 1 else "{recipe}, stage {stages}"
        lines.append(("recipe", message(line, recipe=one.recipe.name, stages=", ".join(one.stages))))
        for result in results:
            lines += _result(one.recipe.name, result)
    for label, text in lines:
        if text:
            _print(f"  {set_cell_size(message(label), 10)}{text}")


def _translated(section: str) -> str:
    """`E. Transformers` in the current language: its letter stays."""
    letter, dot, heading = section.rpartition(". ")
    return f"{letter}{dot}{message(heading)}"


def _result(recipe: str, result: SystemResult) -> list[tuple[str, str]]:
    from pipelines.reports.elements.wording import plain

    claim = result.statement
    if result.claim:
        claim = message("{claim}: {statement}", claim=f"{recipe}/{result.claim}", statement=claim)
    verdict = plain(result.verdict)
    measured = ", ".join(one for one in (result.effect, result.cost) if one)
    return [
        ("claim", claim),
        ("data", result.data),
        ("verdict", message("{verdict}: {measured}", verdict=verdict, measured=measured) if measured else verdict),
        ("why", result.why.replace("**", "")),  # it is Markdown
        ("record", f"docs/{result.page}" if result.page else ""),
    ]


def _print(text: str, style: str | None = None) -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
