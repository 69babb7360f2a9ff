"""The tables that the recipes of the house read, for plans that need names and no data."""

from __future__ import annotations

from pipelines.components import discover
from pipelines.recipe.lines import line_views
from pipelines.recipe.tables import PLAIN
from pipelines.task_families import TaskFamily
from pipelines.task_families.labelled_tables import MAIN, PARTS, labelled_table
from tests.steps import SHIPPED, shipped

EVERYWHERE = ("general", "domain", "task_text", "train", "validation", "test", "general_heldout")
"""Tables of every dataset."""


def named_tables() -> tuple[list[str], dict[str, str]]:
    """Names of all tables, and the family of each task that recipes name."""
    discover(TaskFamily.__module__)
    corpora, families = set[str](), dict[str, str]()
    for name in SHIPPED.names():
        for stage in shipped(name).stages.values():
            for view in line_views(stage).values():
                for word in set(view.corpus) - {*PLAIN, MAIN}:
                    if view.head is not None and view.head.reads:
                        fits = {one for one in view.head.reads if not view.head.unfit(TaskFamily.model_validate(one))}
                        usual = TaskFamily.default_name
                        families[word] = usual if usual in fits else min(fits)
                    elif view.kind.reads_plain_text:
                        corpora.add(word)
    parts = [labelled_table(task, part) for task in families for part in PARTS]
    return [*EVERYWHERE, *sorted(corpora), *parts], families
