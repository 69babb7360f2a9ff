"""Drawings of recipes: a box for each stage, an arrow for weights that it continues, a dashed one for its teacher."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pipelines.recipe.load import Library
from pipelines.recipe.schema import Stage
from pipelines.reports.elements.ancestry import Node, draw_nodes
from pipelines.reports.elements.wording import plain

MAKE_NO_MODEL = ("evaluate", "probe")
STYLE = """\
<style>
svg.ancestry { display: block; min-width: 0 !important; width: 100% }
.ancestry text { fill: currentColor; font-size: 12px } .ancestry .mono { font-size: 10px; opacity: .75 }
.ancestry .mark { font-size: 10.5px; opacity: .75 }
.ancestry .node .name { font-weight: 600 } .ancestry .edge { fill: none; stroke: currentColor; opacity: .6 }
.ancestry .teacher, .ancestry .features { stroke-dasharray: 5 4 }
.ancestry .node rect { fill: none; stroke: currentColor; stroke-width: 1.2 }
.gallery { display: grid; grid-template-columns: repeat(auto-fill, minmax(270px, 1fr)); gap: 18px }
.gallery figure { margin: 0; width: auto; padding: 12px; border: 1px solid var(--md-default-fg-color--lightest) }
.gallery figcaption { max-width: none; margin: 8px 0 0; font-style: normal; font-size: .7rem; text-align: left }
</style>
"""


@cache
def library(recipes: Path) -> Library:
    """The recipes of a folder."""
    return Library(recipes)


@cache
def draw_recipe(recipes: Path, name: str) -> str:
    """The stages of a recipe that make a model, in the direction of their weights; empty where there are none."""
    stages = library(recipes).load(name).stages
    shown = {one: stage for one, stage in stages.items() if str(stage.kind) not in MAKE_NO_MODEL}
    nodes: dict[str, Node] = {}
    for one in _in_order(shown):
        stage = shown[one]
        node = Node(one, [plain(str(stage.kind)), _budget(stage)], "trained")
        node.parents = {pair: None for pair in _parents(stage) if pair[0] in shown}
        nodes[one] = node
    return str(draw_nodes(nodes, f"Stages of {name}")) if nodes else ""


def _parents(stage: Stage) -> list[tuple[str, str]]:
    """The stages that a stage continues, and its teacher, with their roles."""
    start = stage.start
    starts = start if isinstance(start, tuple) else (start,) if isinstance(start, str) else ()
    return [*((one, "start") for one in starts), *([(stage.teacher, "teacher")] if stage.teacher else [])]


def _in_order(stages: dict[str, Stage]) -> list[str]:
    """Names of stages, parents before children."""
    ordered: dict[str, None] = {}

    def visit(name: str) -> None:
        for parent, _ in _parents(stages[name]):
            if parent in stages and parent not in ordered:
                visit(parent)
        ordered[name] = None

    for name in stages:
        visit(name)
    return list(ordered)


def _budget(stage: Stage) -> str:
    if not stage.trains:
        return ""
    return f"{stage.budget.tokens:,} tokens" if stage.budget.tokens else f"{stage.budget.epochs:g} epochs"
