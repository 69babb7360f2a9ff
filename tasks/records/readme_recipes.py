"""The list of recipes in README, by section of recipes/systems.yaml, written with docs/systems.md.

README.md, README.zh.md      between two comments: written from the recipes and nothing else
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from pipelines.lineage.disk import write_text_atomically
from pipelines.messages.translation import ENGLISH, in_language, message
from pipelines.recipe.load import Library
from pipelines.recipe.systems import implementations, read_systems

PAGES = {ENGLISH: Path("README.md"), "zh": Path("README.zh.md")}
"""Language → the page in which the recipes are listed."""
BEGIN = "<!-- written by `python -m tasks.records.systems`: do not edit -->"
END = "<!-- end of the recipes -->"
OTHER = "Other recipes"
"""Title of the recipes that are of no system of the list."""
_LETTER = re.compile(r"^[A-Z]\. ")


def block(recipes: Path, language: str = ENGLISH) -> str:
    """The recipes of each section of the list in the folder `recipes`, in `language`, with the comments around it."""
    library = Library(recipes)
    every = {name: library.load(name) for name in library.names()}
    implemented = implementations(every.values())
    sections = read_systems(recipes)
    rows, listed = [], set()
    for section, systems in sections.items():
        names = list(dict.fromkeys(one.recipe.name for system in systems for one in implemented.get(system.id, ())))
        listed.update(names)
        with_recipe = sum(system.id in implemented for system in systems)
        rows.append((_LETTER.sub("", section), f"{with_recipe}/{len(systems)}", names))
    rows.append((OTHER, "", [name for name in every if name not in listed]))
    ids = [system.id for systems in sections.values() for system in systems]
    having, total = sum(one in implemented for one in ids), len(ids)
    with in_language(language):
        lines = [
            BEGIN,
            message("{having} of {total} published systems of 2000 to 2020 have a recipe:", having=having, total=total),
            "",
            message("| kind | systems | recipes |"),
            "|---|---|---|",
            *(f"| {message(title)} | {share} | {_names(names)} |" for title, share, names in rows if names),
            END,
        ]
    return "\n".join(lines)


def write_recipes(root: Path) -> None:
    """Write the list anew into the pages of the project in `root` that have one."""
    for language, name in PAGES.items():
        page = root / name
        if page.is_file() and BEGIN in (text := page.read_text(encoding="utf-8")):
            write_text_atomically(page, with_block(text, block(root / "recipes", language)))


def with_block(page: str, written: str) -> str:
    """The page with its list replaced by `written`."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{written}{after}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"[`{name}`](recipes/{name}.yaml)" for name in names)
