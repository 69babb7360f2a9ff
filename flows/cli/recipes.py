"""`cursus recipes`: what each recipe is, or the stages of one."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from flows.cli.display import show_recipe
from flows.cli.exit_status import handle_errors
from flows.cli.options import recipe_names
from tasks.environment import project_root

console = Console(highlight=False)


@handle_errors
def recipes(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A recipe whose stages are shown; all recipes when not given.", autocompletion=recipe_names
        ),
    ] = None,
) -> None:
    """List the recipes, or the stages of one."""
    from pipelines.recipe.folders import RecipeFolders
    from pipelines.recipe.load import Library

    library = Library(RecipeFolders.of_project(project_root()))
    if name is not None:
        show_recipe(console, library.load(name))
        return
    listed = [library.load(known) for known in library.names()]
    width = max((len(recipe.name) for recipe in listed), default=0)
    for recipe in listed:
        line = f"{recipe.name:<{width}}  {recipe.description}"
        console.print(f"{line}  {recipe.paper}" if recipe.paper else line, markup=False, soft_wrap=True)
