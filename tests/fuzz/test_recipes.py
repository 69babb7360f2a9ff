"""Recipes of the house with mistakes in them: loaded and planned, or refused with file and key."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from pipelines.lineage.provenance import DataSource
from pipelines.recipe.load import Library
from pipelines.recipe.plan import plan
from pipelines.recipe.problems import Setting
from pipelines.recipe.schema import Recipe
from pipelines.recipe.tables import PLAIN
from pipelines.task_families import TaskFamily
from tests.fuzz.effort import effort, refusal_of, with_findings
from tests.fuzz.structure import misspelt, mistaken
from tests.named_tables import named_tables
from tests.pipelines.recipe.test_bad_recipes import GOOD
from tests.pipelines.recipe.test_impossible_recipes import IMPOSSIBLE
from tests.steps import RECIPES

FUZZED = "fuzzed"
TEXTS = [GOOD, *(path.read_text() for path in sorted(RECIPES.glob("*.yaml")) if path.name != "systems.yaml")]
VALUES = [YAML(typ="safe").load(text) for text in TEXTS]
FINDINGS = [
    *(GOOD.replace(mistake.old, mistake.new, 1) for mistake in IMPOSSIBLE.values()),
    "", "[]", "5", "stages:", "stages: {a:}", "like: fuzzed\nstages: {}", "variants: {a: [b]}\nstages: {a: {}}",
    "stages: {5: {kind: finetune}}", "stages: {a: {kind: pretrain, lines: {b: 5}}}", "a: &a [*a]", "? [a]\n: b",
    "like: regime\nstages: {classify: true}", "like: regime\nstages: {classify: regime}",
]  # fmt: skip
"""What was found once."""


def written(value: Any) -> str:
    """A nested value as YAML."""
    text = io.StringIO()
    YAML(typ="safe").dump(value, text)
    return text.getvalue()


@st.composite
def recipes(draw: st.DrawFn) -> str:
    """The text of a recipe with mistakes."""
    number = draw(st.integers(0, len(TEXTS) - 1))
    if draw(st.integers(0, 3)) == 0:
        return draw(misspelt(TEXTS[number]))
    return written(draw(mistaken(VALUES[number])))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The recipes of the house, which a fuzzed one may refer to."""
    folder = tmp_path_factory.mktemp("checkout") / "recipes"
    shutil.copytree(RECIPES, folder)
    yield folder


@pytest.fixture(scope="module")
def setting() -> tuple[Setting, dict[str, DataSource], dict[str, TaskFamily]]:
    """A dataset that has every table which a recipe names."""
    names, named = named_tables()
    families = {name: TaskFamily.model_validate(family) for name, family in named.items()}
    corpora = {name: {} for name in names if "." not in name and name not in PLAIN}
    setting = Setting(family="text_classification", language="en", corpora=corpora, tasks=named)
    return setting, {name: DataSource(digest=name, path=name) for name in names}, families


@with_findings(FINDINGS)
@given(recipes())
@effort(40)
def test_a_recipe_is_planned_or_refused(
    folder: Path, setting: tuple[Setting, dict[str, DataSource], dict[str, TaskFamily]], text: str
) -> None:
    dataset, tables, families = setting
    path = folder / f"{FUZZED}.yaml"
    with suppress(UnicodeEncodeError):
        path.write_text(text, encoding="utf-8")
    loaded: list[Recipe] = []
    library = Library(folder)
    message = refusal_of(lambda: loaded.append(library.load(FUZZED, setting=dataset)))
    if message is not None:
        assert ".yaml" in message, message
        return
    message = refusal_of(lambda: plan(loaded[0], library, tables, TaskFamily.default(), families=families))
    assert message is None or FUZZED in message or "stage" in message, message
